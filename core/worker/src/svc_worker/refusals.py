"""Why a request is refused, and the answer that says so: JSON with ``error`` and ``code``."""

from __future__ import annotations

import json
import os
from http import HTTPStatus

__all__ = [
    "BodyBroken",
    "BodyTimeout",
    "ClientDisconnected",
    "Refusal",
    "bad_request",
    "refusal_bytes",
]


class Refusal(Exception):
    """The request can't be served; the connection ends with the answer, which repeats nothing of it."""

    def __init__(self, status: int, text: str, code: str = "INVALID_INPUT") -> None:
        super().__init__(text)
        self.status = status
        self.text = text
        self.code = code


class ClientDisconnected(ConnectionResetError):
    """The client is gone: nothing can be sent any more."""


class BodyBroken(Refusal, ValueError):
    """The body of a request ends early, is framed wrongly, or is too large."""


class BodyTimeout(Refusal, TimeoutError):
    """The client stopped sending in the middle of a body, or sends it too slowly."""

    def __init__(self) -> None:
        text = "The client sent the body too slowly, or stopped sending it."
        super().__init__(408, text, "SERVICE_UNAVAILABLE")


def bad_request(text: str) -> Refusal:
    """Returns a refusal with status 400."""
    return Refusal(400, text)


def refusal_bytes(
    status: int, text: str, code: str, date: str, *, request_id: str | None = None, with_body: bool = True
) -> bytes:
    """Returns the whole answer: head and JSON body."""
    body = json.dumps({"error": text, "code": code}).encode("ascii") + b"\n"
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{date}Connection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
        "X-Content-Type-Options: nosniff\r\n"
        "Content-Security-Policy: default-src 'none'; base-uri 'none'; frame-ancestors 'none'\r\n"
        f"Cache-Control: no-store\r\nX-Request-Id: {request_id or os.urandom(16).hex()}\r\n\r\n"
    )
    return head.encode("latin-1") + (body if with_body else b"")
