"""One connection that is kept, for requests whose time is taken one by one."""

from __future__ import annotations

import http.client
import json
from typing import Any

from servers import Server

_PIECE = 1 << 18


class Client:
    """A client of one server.

    Args:
        server: is asked; what its requests must carry is added.
    """

    def __init__(self, server: Server) -> None:
        self._connection = http.client.HTTPConnection(*server.address)
        self._headers = dict(server.headers)
        self._buffer = memoryview(bytearray(_PIECE))

    def put(self, path: str, content: bytes, *, expected: int = 201) -> None:
        """Stores a file, which is new unless something else than 201 is expected. Blocks."""
        self._ask("PUT", path, content, expected=expected).read()

    def get(self, path: str, size: int) -> None:
        """Gets a file of as many bytes, and drops it. Blocks."""
        response = self._ask("GET", path)
        got = 0
        while count := response.readinto(self._buffer):
            got += count
        assert got == size, got

    def version(self, path: str) -> str:
        """The version of HEAD, as the answer for a file names it. Blocks."""
        response = self._ask("HEAD", path)
        response.read()
        return str(response.headers["X-Svc-Version"])

    def get_json(self, path: str) -> Any:
        """Gets an answer in JSON. Blocks."""
        return json.loads(self._ask("GET", path).read())

    def post(self, path: str, value: object, *, expected: int) -> Any:
        """Posts JSON, and returns what was answered. Blocks."""
        response = self._ask(
            "POST", path, json.dumps(value).encode(), expected=expected, content_type="application/json"
        )
        return json.loads(response.read())

    def _ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        expected: int = 200,
        content_type: str = "application/octet-stream",
    ) -> http.client.HTTPResponse:
        headers = self._headers if body is None else {**self._headers, "Content-Type": content_type}
        self._connection.request(method, path, body, headers)
        response = self._connection.getresponse()
        assert response.status == expected, (method, path, response.status, response.read()[:500])
        return response
