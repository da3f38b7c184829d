"""A server with the default plugins and the sign-in that it has by default, and callers of it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from monitoring.prometheus import TOKEN
from svc_blackbox.client import Client
from svc_testing import Server, start_server

__all__ = ["as_root", "root_key_of", "serving"]

_ROOT_KEY = re.compile(r"svc_k_\w+")


@contextmanager
def serving(path: Path, *options: str) -> Iterator[Server]:
    """A server that Prometheus may scrape, with its background process."""
    own = ("--plugin-option", f"metrics.scrape_token={TOKEN}", "--background", "true")
    with start_server(path, "--auth", "self-contained", *own, *options, plugins=None) as running:
        yield running


def root_key_of(server: Server) -> str:
    """The key that its first start has printed."""
    found = _ROOT_KEY.search(server.output)
    assert found, server.output
    return found[0]


def as_root(server: Server) -> dict[str, str]:
    """Signs in; returns the header of root's requests."""
    with Client(server.url) as client:
        answer = client.post("/auth/token", {"api_key": root_key_of(server), "refresh": False})
    assert answer.status == 200, answer.body
    return {"Authorization": f"Bearer {json.loads(answer.body)['token']}"}
