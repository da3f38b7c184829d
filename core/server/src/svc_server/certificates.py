"""How long the certificate of the server is valid."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import lru_cache

from svc.findings import Finding

__all__ = ["certificate_findings"]

_WARN_SECONDS = 14 * 86_400
_DAY_SECONDS = 86_400
_LOOK_SECONDS = 600


def certificate_findings(path: str) -> Iterator[Finding]:
    """Yields a finding where a certificate has ended, or does within two weeks.

    Reads the file every ten minutes, since it may be replaced; one that can't be read now was fine when the
    server began with it.
    """
    ends = _end_of(path, int(time.monotonic() // _LOOK_SECONDS))
    if ends is None:
        return
    left = ends - time.time()
    if left < _WARN_SECONDS:
        when = time.strftime("%Y-%m-%d", time.gmtime(ends))
        said = f"ends on {when}" if left > 0 else f"has ended, on {when}"
        yield Finding(
            "server.certificate",
            "server",
            f"The certificate of the server {said}: clients refuse it then.",
            "Renew it, replace the file, and let the server load it with SIGHUP.",
            detail=f"{path}: {max(0, int(left // _DAY_SECONDS))} days are left.",
        )


@lru_cache(maxsize=2)
def _end_of(path: str, _moment: int) -> float | None:
    from cryptography import x509

    try:
        with open(path, "rb") as file:
            return x509.load_pem_x509_certificate(file.read()).not_valid_after_utc.timestamp()
    except (OSError, ValueError):
        return None
