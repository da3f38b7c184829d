"""The issuer of these tests, and the plugins that the fixtures of svc use."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from svc_auth_oidc.descriptor import PLUGIN


class IssuerProcess:
    """A running ``issuer.py``.

    Attributes:
        url: what its tokens name in ``iss``.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        self.url = process.stdout.readline().strip()

    @property
    def argument(self) -> str:
        """What follows ``oidc://``."""
        return self.url.removeprefix("http://")

    def order(self, name: str, **given):
        request = urllib.request.Request(
            f"{self.url}/orders/{name}", json.dumps(given).encode(), {"Content-Type": "application/json"}
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as answer:
            return json.loads(answer.read())

    def sign(self, kid=None, algorithm=None, headers=None, **claims) -> str:
        claims = {"sub": "ann-at-the-issuer", "preferred_username": "ann", **claims}
        return self.order("sign", kid=kid, algorithm=algorithm, headers=headers or {}, claims=claims)["token"]

    def rotate(self, kind="EdDSA", *, keep=False, with_alg=True) -> str:
        return self.order("rotate", kind=kind, keep=keep, with_alg=with_alg)["kid"]

    @property
    def fetches(self) -> int:
        return self.order("look")["counts"]["discovery"]

    @property
    def keys(self) -> list[dict]:
        return self.order("look")["keys"]


@pytest.fixture
def issuer() -> Iterator[IssuerProcess]:
    """An issuer of this test alone."""
    program = [sys.executable, str(Path(__file__).with_name("issuer.py"))]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield IssuerProcess(process)
        finally:
            process.kill()


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """Ours, and the one that it needs."""
    return ("users", PLUGIN.id)
