"""An HTTP client that sends exactly what it is told: no path clean-up, no hidden headers, no retries."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from typing import Any, Self
from urllib.parse import quote, urlencode, urlsplit

TIMEOUT_S = 30.0
"""No answer of the server may take longer; a test that runs into it has found a hang."""


@dataclass(frozen=True, slots=True)
class Response:
    """One answer: ``headers`` compares names without case."""

    status: int
    headers: http.client.HTTPMessage
    body: bytes

    def json(self) -> Any:
        """The body as JSON, which the headers must have announced."""
        assert self.headers.get_content_type() == "application/json", (self.status, self.headers.items())
        return json.loads(self.body)

    def __getitem__(self, name: str) -> str:
        value = self.headers[name]
        assert value is not None, f"no header {name} in {self.headers.items()}"
        return value

    def __contains__(self, name: str) -> bool:
        return name in self.headers


class Client:
    """One keep-alive connection. Not for use by several threads at once."""

    def __init__(self, url: str, timeout: float = TIMEOUT_S) -> None:
        parts = urlsplit(url)
        assert parts.hostname is not None
        self.url = url
        self._connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=timeout)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def request(
        self,
        method: str,
        target: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        encode_chunked: bool = False,
        **query: object,
    ) -> Response:
        """Sends one request; ``target`` goes out as it is, ``query`` is appended to it."""
        if query:
            target += ("&" if "?" in target else "?") + urlencode(query)
        try:
            self._connection.request(method, target, body, headers or {}, encode_chunked=encode_chunked)
            raw = self._connection.getresponse()
            response = Response(raw.status, raw.msg, raw.read())
        except BaseException:
            self._connection.close()
            raise
        if raw.will_close:
            self._connection.close()
        return response

    def get(self, target: str, headers: dict[str, str] | None = None, **query: object) -> Response:
        return self.request("GET", target, None, headers, **query)

    def head(self, target: str, headers: dict[str, str] | None = None, **query: object) -> Response:
        return self.request("HEAD", target, None, headers, **query)

    def delete(self, target: str, headers: dict[str, str] | None = None, **query: object) -> Response:
        return self.request("DELETE", target, None, headers, **query)

    def send_json(
        self, method: str, target: str, value: Any, headers: dict[str, str] | None = None, **query: object
    ) -> Response:
        """Sends a JSON document as ``application/json`` unless ``headers`` say otherwise."""
        headers = {"Content-Type": "application/json", **(headers or {})}
        return self.request(method, target, json.dumps(value).encode(), headers, **query)

    def post(
        self, target: str, value: Any, headers: dict[str, str] | None = None, **query: object
    ) -> Response:
        return self.send_json("POST", target, value, headers, **query)

    def put_file(
        self, path: str, content: bytes = b"", headers: dict[str, str] | None = None, **query: object
    ) -> Response:
        """Stores a file at a path given as text, whatever characters it holds."""
        return self.request("PUT", files(path), content, headers, **query)

    def store(self, path: str, content: bytes = b"", headers: dict[str, str] | None = None) -> Any:
        """Stores a file and insists on success; returns the answer's JSON."""
        response = self.put_file(path, content, headers)
        assert response.status in (200, 201), (path, response.status, response.body[:500])
        return response.json()

    def read(self, path: str, **query: object) -> bytes:
        """Reads a file and insists on success."""
        response = self.get(files(path), **query)
        assert response.status == 200, (path, response.status, response.body[:500])
        return response.body

    def listing(self, path: str, **query: object) -> Any:
        """Lists a directory and insists on success."""
        response = self.get(files(path), **query)
        assert response.status == 200, (path, response.status, response.body[:500])
        return response.json()

    def names(self, path: str, **query: object) -> list[str]:
        """The names in a directory, in the order of the listing."""
        return [item["name"] for item in self.listing(path, **{"limit": 1000, **query})["items"]]


def files(path: str) -> str:
    """The request target of a path under ``/files``."""
    return "/files" + quote("/" + path.lstrip("/"), safe="/")


def links(path: str) -> str:
    """The request target of a path under ``/links``."""
    return "/links" + quote("/" + path.lstrip("/"), safe="/")


def assert_error(response: Response, status: int, code: str | None = None) -> Any:
    """Checks that a response is the one shape that every error has; returns its JSON."""
    assert response.status == status, (response.status, response.body[:500])
    value = response.json()
    assert isinstance(value["error"], str), value
    assert value["error"].strip(), value
    assert isinstance(value["code"], str), value
    if code is not None:
        assert value["code"] == code, value
    assert "Traceback" not in value["error"]
    assert response["X-Request-Id"]
    return value
