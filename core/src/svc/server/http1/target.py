"""The request line: method, target and version, each read in exactly one way (RFC 9112, 3)."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote_to_bytes

from svc.server.http1.refusals import Refusal, bad_request

__all__ = ["check_start", "is_valid_host", "parse_request_line"]

METHOD_BYTES = 32

_LINE = re.compile(rb"([!#$%&'*+\-.^_`|~0-9A-Za-z]+) ([\x21-\x7e]+) HTTP/([0-9])\.([0-9])\r\n")
_START = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+(?: [\x21-\x7e]*(?: [^\x00-\x1f\x7f ]*)?)?\r?\Z")
_HOST = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9\-._~!$&'()*+,;=%]*)(?::[0-9]{0,5})?")
_METHODS = {
    name.encode(): name for name in ("GET", "HEAD", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "PROPFIND")
}


def parse_request_line(head: bytes, environ: dict[str, Any], limit: int) -> int:
    """Reads the request line into the WSGI environment.

    Sets ``REQUEST_METHOD``, ``RAW_URI``, ``PATH_INFO``, ``QUERY_STRING``, ``SERVER_PROTOCOL``, and, for an
    absolute target, ``svc.authority``.

    Args:
        head: a whole head; the line is its first.
        environ: what to set.
        limit: most bytes of the line.

    Returns:
        Where the header fields begin.

    Raises:
        Refusal: 414 for a line over the limit, 505 for a major version that isn't 1, 501 for what no
            resource can do, 400 for everything else that is wrong.
    """
    match = _LINE.match(head)
    if match is None:
        raise _explain(head, limit)
    method, target, major, minor = match.groups()
    if match.end() - 2 > limit:
        raise _too_long()
    if major != b"1":
        raise Refusal(505, "The server speaks HTTP/1.1.")
    name = _METHODS.get(method)
    if name is None:
        name = _unusual_method(method)
    environ["REQUEST_METHOD"] = name
    # A higher minor version is answered as the highest that we know (RFC 9110, 2.5).
    environ["SERVER_PROTOCOL"] = "HTTP/1.0" if minor == b"0" else "HTTP/1.1"
    text = target.decode("latin-1")
    environ["RAW_URI"] = text
    if "#" in text:
        raise bad_request("The target of a request has no fragment.")
    if text[0] != "/":
        text = _other_form(text, name, environ)
    path, _, environ["QUERY_STRING"] = text.partition("?")
    environ["PATH_INFO"] = unquote_to_bytes(path.encode("latin-1")).decode("latin-1") if "%" in path else path
    return match.end()


def check_start(data: bytes, limit: int) -> None:
    """Refuses what can't become a request line any more, though its end has not come.

    Args:
        data: the first bytes of a request, without a line end.
        limit: most bytes of the line.

    Raises:
        Refusal: as ``parse_request_line``.
    """
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
    """Returns the path and query of a target that doesn't begin with a slash."""
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


def _explain(head: bytes, limit: int) -> Refusal:
    """What is wrong with a line that has an end."""
    end = head.find(b"\r\n")
    if end > limit:
        return _too_long()
    words = head[:end].split(b" ")
    if len(words) == 3 and re.fullmatch(rb"HTTP/[0-9]+(\.[0-9]+)?", words[2]):
        if not re.fullmatch(rb"HTTP/[0-9]\.[0-9]", words[2]):
            return Refusal(505, "The server speaks HTTP/1.1.")
        if re.fullmatch(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+", words[0]) is None:
            return bad_request("The method is not valid.")
        return bad_request("The target of the request is not valid.")
    return bad_request("The request line is not valid.")


def _too_long() -> Refusal:
    return Refusal(414, "The request line is too long.")
