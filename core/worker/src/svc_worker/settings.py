"""The limits of a worker: gunicorn's settings where it has one for the purpose, else the environment."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

__all__ = ["VARIABLES", "HttpSettings", "Variable", "unsupported_settings"]

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

REQUEST_LINE_BYTES = 16384
"""A path of 4,096 bytes may take 12,288 when it is percent-encoded; gunicorn's default is 4,094."""

HEAD_BYTES = 65536
"""All header fields of one request together."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A limit that gunicorn has no setting for: an environment variable, which ``raw_env`` can hold too."""

    name: str
    default: int
    meaning: str


VARIABLES: tuple[Variable, ...] = (
    Variable(
        "SVC_HTTP_HEADER_TIMEOUT", 15, "Seconds for a request's head to arrive, and for a TLS handshake."
    ),
    Variable("SVC_BODY_TIMEOUT", 30, "Longest wait for a client's next bytes of a body, in seconds."),
    Variable(
        "SVC_HTTP_WRITE_TIMEOUT", 60, "Longest wait for a client to take bytes of an answer, in seconds."
    ),
    Variable(
        "SVC_MIN_RATE",
        100,
        "Bytes a second that a client must send of a body, or take of an answer; 0 for any.",
    ),
    Variable("SVC_HTTP_RATE_PERIOD", 30, "Seconds of waiting for a client that the rate is averaged over."),
    Variable("SVC_HTTP_MAX_BODY", 0, "Most bytes of a request body; 0 leaves that to the application."),
    Variable(
        "SVC_HTTP_DRAIN_BYTES", 1048576, "Most bytes of an unread body that are read just to be dropped."
    ),
    Variable("SVC_HTTP_DRAIN_SECONDS", 2, "How long that may take."),
)


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """What a worker bounds.

    Attributes:
        request_line: bytes of a request line.
        fields: number of header fields.
        field_size: bytes of one header field.
        underscores: what is done with a field whose name has an underscore: ``drop``, ``refuse`` or
            ``dangerous`` (taken, though it may pass for another field).
        keepalive_s: longest wait for another request of a connection; 0 closes after each.
        header_timeout_s: this and those up to ``drain_s``: see ``VARIABLES``.
        rate_period_s: at least 1.
        max_body: None for no limit.
        trusted_peers: addresses that may say that the client came by TLS; ``*`` for all.
        trusted_networks: networks of such addresses.
        scheme_fields: the fields by which they do, as in the environment, with their values.
    """

    request_line: int
    fields: int
    field_size: int
    underscores: str
    keepalive_s: float
    header_timeout_s: float
    body_timeout_s: float
    write_timeout_s: float
    minimum_rate: int
    rate_period_s: float
    max_body: int | None
    drain_bytes: int
    drain_s: float
    trusted_peers: frozenset[str]
    trusted_networks: tuple[Network, ...]
    scheme_fields: tuple[tuple[str, str], ...]

    @property
    def head(self) -> int:
        """Bytes of a whole head, the request line included."""
        return self.request_line + HEAD_BYTES

    def trusts(self, peer: str) -> bool:
        """Whether the peer with this address may say that its client came by TLS; ``""`` for Unix sockets."""
        if not peer or "*" in self.trusted_peers or peer in self.trusted_peers:
            return True
        if not self.trusted_networks:
            return False
        address = ipaddress.ip_address(peer.partition("%")[0])
        return any(address in network for network in self.trusted_networks)

    @classmethod
    def load(cls, cfg: Any, environ: Mapping[str, str]) -> HttpSettings:
        """Returns the settings of a worker; ValueError for a variable that is no whole number from 0 on."""
        values = {variable.name: _whole(environ, variable) for variable in VARIABLES}
        return cls(
            request_line=max(int(cfg.limit_request_line), REQUEST_LINE_BYTES),
            fields=int(cfg.limit_request_fields),
            field_size=int(cfg.limit_request_field_size) or HEAD_BYTES,
            underscores=str(cfg.header_map),
            keepalive_s=float(cfg.keepalive),
            header_timeout_s=float(values["SVC_HTTP_HEADER_TIMEOUT"]),
            body_timeout_s=float(values["SVC_BODY_TIMEOUT"]),
            write_timeout_s=float(values["SVC_HTTP_WRITE_TIMEOUT"]),
            minimum_rate=values["SVC_MIN_RATE"],
            rate_period_s=float(max(1, values["SVC_HTTP_RATE_PERIOD"])),
            max_body=values["SVC_HTTP_MAX_BODY"] or None,
            drain_bytes=values["SVC_HTTP_DRAIN_BYTES"],
            drain_s=float(values["SVC_HTTP_DRAIN_SECONDS"]),
            trusted_peers=frozenset(str(address) for address in cfg.forwarded_allow_ips),
            trusted_networks=tuple(cfg.forwarded_allow_networks()),
            scheme_fields=tuple(
                ("HTTP_" + name.upper().replace("-", "_"), value)
                for name, value in cfg.secure_scheme_headers.items()
            ),
        )


def unsupported_settings(cfg: Any) -> list[str]:
    """Returns gunicorn's settings that ask for what this worker doesn't do."""
    found = []
    if str(getattr(cfg, "proxy_protocol", "off")).lower() not in ("off", "false", ""):
        found.append("proxy_protocol")
    if int(getattr(cfg, "limit_request_fields", 100)) < 1:
        found.append("limit_request_fields")
    return found


def _whole(environ: Mapping[str, str], variable: Variable) -> int:
    text = environ.get(variable.name, "").strip()
    if not text:
        return variable.default
    if not text.isascii() or not text.isdigit() or len(text) > 15:
        raise ValueError(f"{variable.name}: {text!r} is not a whole number.")
    return int(text)
