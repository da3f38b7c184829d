"""The request line: method, target and version, each read in exactly one way (RFC 9112, 3)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes

from svc_worker.refusals import Refusal, bad_request

__all__ = ["check_start", "is_valid_host", "parse_request_line"]

METHOD_BYTES = 32

_TOKEN = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# Leaves visible ASCII as it is, and nothing else.
_VISIBLE = bytes(byte if 0x21 <= byte < 0x7F else byte ^ 1 for byte in range(256))
_VERSION = re.compile(rb"HTTP/[0-9]\.[0-9]")
# A higher minor version is answered as the highest that we know (RFC 9110, 2.5).
_PROTOCOLS = {b"HTTP/1.%d" % minor: "HTTP/1.1" if minor else "HTTP/1.0" for minor in range(10)}
_START = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?: [\x21-\x7e]*(?: [^\x00-\x1f\x7f ]*)?)?\r?\Z")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=%]*)(?::[0-9]{0,5})?")
_METHODS = {
    name.encode(): name for name in ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "PROPFIND")
}


def parse_request_line(line: bytes, environ: dict[str, Any], limit: int) -> None:
    """Reads the request line into the WSGI environment.

    Sets ``REQUEST_METHOD``, ``RAW_URI``, ``PATH_INFO``, ``QUERY_STRING``, ``SERVER_PROTOCOL``, and, for an
    absolute target, ``svc.authority``.

    Raises Refusal: 414 for a line over the limit, 505 for a major version that isn't 1, 501 for methods that
    no resource has, 400 for everything else that is wrong.
    """
    words = line.split(b" ")
    if len(words) != 3:
        raise _explain(line, limit)
    method, target, version = words
    name, protocol = _METHODS.get(method), _PROTOCOLS.get(version)
    if (
        not target
        or target.translate(_VISIBLE) != target
        or not (protocol or _VERSION.fullmatch(version))
        or not (name or _TOKEN.fullmatch(method))
    ):
        raise _explain(line, limit)
    if len(line) > limit:
        raise _too_long()
    if protocol is None:
        raise Refusal(505, "The server speaks HTTP/1.1.")
    if name is None:
        name = _unusual_method(method)
    environ["REQUEST_METHOD"] = name
    environ["SERVER_PROTOCOL"] = protocol
    text = path = target.decode()
    environ["RAW_URI"] = text
    if "#" in text:
        raise bad_request("The target of a request has no fragment.")
    if text[0] != "/":
        path = _other_form(text, name, environ)
    path, _, environ["QUERY_STRING"] = path.partition("?")
    environ["PATH_INFO"] = unquote_to_bytes(path).decode("latin-1") if "%" in path else path


def check_start(data: bytes, limit: int) -> None:
    """Refuses what can't become a request line any more, though its end has not come."""
    if len(data) > limit:
        raise _too_long()
    if _START.match(data) is None:
        raise bad_request("The request line is not valid.")


def is_valid_host(host: str) -> bool:
    """Whether ``host`` is a value that ``Host`` may have (RFC 9110, 7.2)."""
    return _HOST.fullmatch(host) is not None


def _unusual_method(method: bytes) -> str:
    if len(method) > METHOD_BYTES:
        raise Refusal(501, "The server knows no such method.")
    if method == b"CONNECT":
        raise Refusal(501, "The server is no proxy: it opens no tunnels.")
    if method == b"PRI":
        raise Refusal(505, "The server speaks HTTP/1.1.")
    return method.decode("ascii")


def _other_form(text: str, method: str, environ: dict[str, Any]) -> str:
    if text == "*":
        if method != "OPTIONS":
            raise bad_request("Only OPTIONS may ask for '*'.")
        return text
    scheme, mark, rest = text.partition("://")
    if not mark or scheme.lower() not in ("http", "https"):
        raise bad_request("The target of the request is not valid.")
    end = min((at for at in (rest.find("/"), rest.find("?")) if at >= 0), default=len(rest))
    authority, path = rest[:end], rest[end:]
    if not authority or not is_valid_host(authority):
        raise bad_request("The target of the request names no valid host.")
    environ["svc.authority"] = authority
    if not path and method == "OPTIONS":
        return "*"
    return path if path.startswith("/") else f"/{path}"


def _explain(line: bytes, limit: int) -> Refusal:
    """What is wrong with a line that has an end."""
    if len(line) > limit:
        return _too_long()
    words = line.split(b" ")
    if len(words) == 3 and re.fullmatch(rb"HTTP/[0-9]+(\.[0-9]+)?", words[2]):
        if _VERSION.fullmatch(words[2]) is None:
            return Refusal(505, "The server speaks HTTP/1.1.")
        if _TOKEN.fullmatch(words[0]) is None:
            return bad_request("The method is not valid.")
        return bad_request("The target of the request is not valid.")
    return bad_request("The request line is not valid.")


def _too_long() -> Refusal:
    return Refusal(414, "The request line is too long.")
