"""Heads of requests: from their bytes to a WSGI environment and the framing of the body.

llhttp reads the header fields (strictly: no folding, no bare CR or LF, no space before a colon). How long the
body is, and whether the connection goes on, is decided here.
"""

from __future__ import annotations

import re
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from svc_worker.refusals import Refusal, bad_request
from svc_worker.settings import HttpSettings
from svc_worker.target import is_valid_host, parse_request_line

__all__ = ["CHUNKED", "HeadParser"]

CHUNKED = -1
"""The ``length`` of a body that comes in chunks."""

_PREFIX = b"GET / HTTP/1.1\r\n"
_LENGTH = re.compile(r"[0-9]{1,18}")
_KNOWN_NAMES = 1024

# Names of fields are translated once. Clients can't fill this beyond its bound.
_keys: dict[bytes, str] = {}


class HeadParser:
    """Parses the heads of one connection.

    Most clients send the fields of their last request again, byte for byte: such fields are read once.
    ``template`` is what is the same in the environments of all requests.

    The attributes are of the last head. ``length`` is the bytes of its body, ``CHUNKED``, or 0 for none.
    """

    __slots__ = (
        "_complete",
        "_count",
        "_environ",
        "_fields",
        "_flaw",
        "_good_host",
        "_known",
        "_known_text",
        "_llhttp",
        "_longest",
        "_settings",
        "_template",
        "expects_continue",
        "is_http_1_0",
        "keep_alive",
        "length",
    )

    def __init__(self, settings: HttpSettings, template: dict[str, Any]) -> None:
        self._settings = settings
        self._longest = settings.head
        self._template = template
        self._llhttp: HttpRequestParser | None = None
        self._fields: dict[str, str] = {}
        # Of the last head with usual fields and no body: the bytes of the fields, and their environment.
        self._known_text = b""
        self._known: dict[str, Any] = {}
        self._flaw: Refusal | None = None
        self._good_host: str | None = None
        self._count = 0
        self._complete = 0
        self.length = 0
        self.keep_alive = True
        self.expects_continue = False
        self.is_http_1_0 = False

    def parse(self, head: bytes) -> dict[str, Any]:
        """Returns the WSGI environment of a request that may be served, else Refusal; sets the attributes.

        ``head`` goes from the first byte of the request line to the empty line, that included.
        """
        settings = self._settings
        line, _, text = head.partition(b"\r\n")
        is_known = text == self._known_text
        environ = self._known.copy() if is_known else self._template.copy()
        parse_request_line(line, environ, settings.request_line)
        if len(head) > self._longest:
            raise _too_large()
        is_usual = environ["SERVER_PROTOCOL"] == "HTTP/1.1" and "svc.authority" not in environ
        if is_known and is_usual:
            self.is_http_1_0 = self.expects_continue = False
            self.keep_alive, self.length = True, 0
            return environ
        fields = self._fields = {}
        self._count = self._complete = 0
        self._flaw = None
        self._feed(_PREFIX + text)
        if self._flaw is not None:
            raise self._flaw
        if self._count > settings.fields:
            raise _too_large()
        environ.update(fields)
        self._decide(environ)
        if self._complete != 1:
            raise bad_request("The header fields are not valid.")
        if self.length:
            # llhttp would take the next head for the body, which we read ourselves.
            self._llhttp = None
        elif is_usual and self.keep_alive:
            self._known_text, self._known = text, environ.copy()
        return environ

    def close(self) -> None:
        """Ends the reference cycles of the parser, with llhttp and with the traceback of a flaw."""
        self._llhttp = None
        self._flaw = None
        self._known = {}

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by llhttp with each field."""
        self._count += 1
        key = _keys.get(name)
        if key is None:
            key = self._learn(name)
        if len(value) + len(name) > self._settings.field_size:
            self._flaw = _too_large()
            return
        text = value.decode("latin-1")
        if text[-1:] in (" ", "\t"):
            text = text.rstrip(" \t")
        fields = self._fields
        if key in fields:
            self._repeat(key, text)
        elif key:
            fields[key] = text

    def on_headers_complete(self) -> None:
        """Called by llhttp after the last field."""
        self._complete += 1

    def _feed(self, data: bytes) -> None:
        parser = self._llhttp
        if parser is None:
            parser = self._llhttp = HttpRequestParser(self)
        try:
            parser.feed_data(data)
        except HttpParserUpgrade:
            # Nothing is upgraded here: the request is answered as if it hadn't asked (RFC 9110, 7.8).
            self._llhttp = None
        except HttpParserError:
            self._llhttp = None
            if self._complete != 1:
                raise bad_request(self._flaw_of_framing()) from None
            # It doesn't like the framing; we say more exactly what is wrong with it.
            self._complete = 2

    def _flaw_of_framing(self) -> str:
        fields = self._fields
        if "CONTENT_LENGTH" in fields or "HTTP_TRANSFER_ENCODING" in fields:
            return "The header fields are not valid, or contradict each other on the length of the body."
        return "The header fields are not valid."

    def _learn(self, name: bytes) -> str:
        """Returns the key of a field in the environment; the empty string when it is left out."""
        text = name.decode("ascii").upper()
        if "_" in text and self._settings.underscores != "dangerous":
            if self._settings.underscores == "refuse":
                self._flaw = bad_request("The name of a header field has an underscore.")
            return ""
        text = text.replace("-", "_")
        key = text if text in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{text}"
        if len(_keys) < _KNOWN_NAMES:
            _keys[name] = key
        return key

    def _repeat(self, key: str, text: str) -> None:
        if key == "HTTP_HOST":
            self._flaw = bad_request("The request has more than one Host.")
        elif key == "CONTENT_LENGTH":
            self._flaw = bad_request("The request has more than one Content-Length.")
        elif key == "HTTP_COOKIE":
            self._fields[key] += "; " + text
        else:
            self._fields[key] += "," + text

    def _decide(self, environ: dict[str, Any]) -> None:
        self.is_http_1_0 = old = environ["SERVER_PROTOCOL"] == "HTTP/1.0"
        host = environ.get("HTTP_HOST")
        if host is None:
            if not old:
                raise bad_request("A request of HTTP/1.1 needs a Host.")
        elif host != self._good_host:
            if not is_valid_host(host):
                raise bad_request("The Host is not valid.")
            self._good_host = host
        authority = environ.pop("svc.authority", None)
        if authority is not None:
            environ["HTTP_HOST"] = authority
        if "CONTENT_LENGTH" in environ or "HTTP_TRANSFER_ENCODING" in environ:
            self.length = self._framing(environ, old)
        else:
            self.length = 0
        connection = environ.get("HTTP_CONNECTION")
        self.keep_alive = not old if connection is None else _persists(connection, old)
        expectation = environ.get("HTTP_EXPECT")
        self.expects_continue = False
        if expectation is not None and not old:
            if expectation.lower() != "100-continue":
                raise Refusal(417, "Expect knows only 100-continue.")
            self.expects_continue = self.length != 0

    def _framing(self, environ: dict[str, Any], old: bool) -> int:
        length = environ.get("CONTENT_LENGTH")
        coding = environ.get("HTTP_TRANSFER_ENCODING")
        if coding is not None:
            if length is not None:
                raise bad_request("The request has both Content-Length and Transfer-Encoding.")
            if old:
                raise bad_request("HTTP/1.0 has no Transfer-Encoding.")
            names = [name.strip(" \t").lower() for name in coding.split(",")]
            if "" in names or names.count("chunked") > 1 or "chunked" in names[:-1]:
                raise bad_request("The Transfer-Encoding is not valid.")
            if names != ["chunked"]:
                raise Refusal(501, "The only transfer coding is chunked.")
            return CHUNKED
        if length is None or _LENGTH.fullmatch(length) is None:
            raise bad_request("Content-Length is not a number of bytes.")
        size = int(length)
        limit = self._settings.max_body
        if limit is not None and size > limit:
            raise Refusal(413, f"The body may have at most {limit} bytes.", "PAYLOAD_TOO_LARGE")
        return size


def _persists(connection: str, old: bool) -> bool:
    options = [option.strip(" \t").lower() for option in connection.split(",")]
    if "close" in options:
        return False
    return not old or "keep-alive" in options


def _too_large() -> Refusal:
    return Refusal(431, "The header fields are too many or too long.")
