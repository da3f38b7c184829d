"""A real Prometheus, with the configuration of ``contrib/grafana``, that scrapes a server of a test."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from svc_testing import free_port

__all__ = ["CONTRIB", "TOKEN", "Prometheus", "program", "scraping"]

CONTRIB = Path(__file__).parents[2] / "contrib" / "grafana"
TOKEN = "a token for scrapes"
_SHIPPED = CONTRIB / "prometheus" / "prometheus.yml"
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0


def program(name: str) -> str:
    """The path of one of its programs."""
    found = shutil.which(name)
    assert found is not None, f"{name} of Debian's prometheus is missing: python tests/system_packages.py"
    return found


class Prometheus:
    """One that runs.

    Args:
        url: where it answers.
    """

    def __init__(self, url: str) -> None:
        self._url = f"{url}/api/v1"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Asks for the series of an expression now: each has ``metric`` (labels) and ``value``."""
        found = self._ask("query", query=expression)
        assert found["resultType"] == "vector", found
        return found["result"]

    def label_values(self, label: str, selector: str) -> list[str]:
        """Asks for the values that a label has in the series of a selector."""
        return self._ask(f"label/{label}/values", **{"match[]": selector})

    def targets(self) -> list[dict[str, Any]]:
        """Asks for what it scrapes."""
        return self._ask("targets")["activeTargets"]

    def rules(self) -> list[dict[str, Any]]:
        """Asks for the rules of all groups, with their states."""
        return [rule for group in self._ask("rules")["groups"] for rule in group["rules"]]

    def wait_for_scrapes(self, count: int) -> None:
        """Waits until it has scraped so often from now on: what was counted before is in the last of them."""
        seen: set[str] = set()
        deadline = time.monotonic() + _START_SECONDS
        while len(seen) <= count:  # One may have begun before.
            assert time.monotonic() < deadline, self.targets()
            time.sleep(0.1)
            for target in self.targets():
                if target["health"] == "up":
                    seen.add(target["lastScrape"])

    def _ask(self, what: str, **words: str) -> Any:
        with self._opener.open(f"{self._url}/{what}?{urllib.parse.urlencode(words)}", timeout=30) as answer:
            content = json.load(answer)
        assert content["status"] == "success", content
        assert not content.get("warnings"), content
        return content["data"]


@contextmanager
def scraping(directory: Path, url: str, *, seconds: int = 1) -> Iterator[Prometheus]:
    """Runs one until the block ends; it has scraped once when the block begins.

    Args:
        directory: where it keeps what it reads; nothing is written to it before.
        url: of the server of svc.
        seconds: from one scrape to the next.
    """
    directory.mkdir()
    (directory / "scrape_token").write_text(TOKEN)
    shutil.copy(CONTRIB / "prometheus" / "svc.rules.yml", directory)
    configuration = _SHIPPED.read_text()
    target = url.removeprefix("http://")
    for shipped, own in (("15s", f"{seconds}s"), ("localhost:6830", target)):
        assert shipped in configuration
        configuration = configuration.replace(shipped, own)
    (directory / "prometheus.yml").write_text(configuration)
    address = f"127.0.0.1:{free_port()}"
    log = directory / "log"
    with log.open("w") as stream:
        process = subprocess.Popen(
            [
                program("prometheus"),
                f"--config.file={directory / 'prometheus.yml'}",
                f"--storage.tsdb.path={directory / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=stream,
            stderr=stream,
        )
    try:
        prometheus = Prometheus(f"http://{address}")
        _wait_until_it_scrapes(process, prometheus, log)
        yield prometheus
    finally:
        process.terminate()
        process.wait(_STOP_SECONDS)


def _wait_until_it_scrapes(process: subprocess.Popen[bytes], prometheus: Prometheus, log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS
    targets: list[dict[str, Any]] = []
    while [target["health"] for target in targets] != ["up"]:
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < deadline, (targets, log.read_text())
        time.sleep(0.1)
        try:
            targets = prometheus.targets()
        except urllib.error.URLError:
            targets = []
