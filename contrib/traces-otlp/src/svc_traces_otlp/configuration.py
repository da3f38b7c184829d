"""The settings of the plugin."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from svc.plugin import Secret

__all__ = ["TracesConfiguration"]


class TracesConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where spans go to, and which.

    Attributes:
        endpoint: URL of the collector, with the path of traces. It is shown: no place for passwords.
        headers: fields of the requests to it, as ``name=value,name=value``.
        compression: of the requests to it.
        service_name: what traces call this server.
        sample_ratio: share of the requests that are traced, of those that come without a ``traceparent``.
        paths: whether spans tell the paths of URLs, and with them the names of files.
        queue_size: requests that wait to be sent, at most; what comes then is dropped, and counted.
        interval_seconds: how long the first of them waits for others.
        timeout_seconds: how long a collector may take for one message, with all tries.
    """

    endpoint: Annotated[str, msgspec.Meta(pattern=r"^https?://[^\s/]")] = "http://localhost:4318/v1/traces"
    headers: Secret = Secret()
    compression: Literal["none", "gzip"] = "none"
    service_name: Annotated[str, msgspec.Meta(min_length=1)] = "svc"
    sample_ratio: Annotated[float, msgspec.Meta(ge=0, le=1)] = 1.0
    paths: bool = False
    queue_size: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 4096
    interval_seconds: Annotated[float, msgspec.Meta(gt=0, le=600)] = 2.0
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, le=600)] = 10.0

    def __post_init__(self) -> None:
        self.header_fields()

    def header_fields(self) -> dict[str, str]:
        """Returns the fields of ``headers``; raises ValueError where it is of another form."""
        fields = {}
        for part in filter(None, (text.strip() for text in self.headers.reveal().split(","))):
            name, separator, value = part.partition("=")
            if not separator or not name.strip() or not part.isprintable() or not part.isascii():
                raise ValueError("headers must be name=value, several of them separated by commas")
            fields[name.strip()] = value.strip()
        return fields
