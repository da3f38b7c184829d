"""What a deployment can set about the pipeline."""

from __future__ import annotations

from msgspec import Struct, field

__all__ = ["Limits", "PipelineSettings"]


class Limits(Struct, frozen=True):
    """The limits of a server, each in this one place: whoever takes a file, a JSON body or a batch asks here.

    Attributes:
        file_body: most bytes of one stored file.
        json_body: most bytes of a JSON body; a route may take less.
        batch_operations: most operations of one batch.
        body_timeout_s: longest wait for the next bytes of a body, in seconds.
    """

    file_body: int = 10 * 1024**3
    json_body: int = 32 * 1024**2
    batch_operations: int = 10_000
    body_timeout_s: float = 30.0


class PipelineSettings(Struct, frozen=True):
    """Settings of the pipeline.

    Attributes:
        auth: name of the auth mode, with ``://argument`` when it takes one.
        cors_origins: origins that browsers may call from; ``"*"`` for all.
        startup_wait_s: how long a request waits for a database that is being opened before it gets 503.
        trusted_proxies: addresses and networks of proxies whose ``X-Forwarded-For`` says who the client is.
        hsts_s: for how long browsers that came by TLS come by nothing else, in seconds; 0: they are not told.
    """

    auth: str = "self-contained"
    cors_origins: tuple[str, ...] = ()
    limits: Limits = field(default_factory=Limits)
    access_log: bool = False
    startup_wait_s: float = 1.0
    trusted_proxies: tuple[str, ...] = ()
    hsts_s: int = 0
