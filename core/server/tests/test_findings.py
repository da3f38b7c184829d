"""Findings: told once, bounded, merged from all processes, fit for strangers; the dead are not believed."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from svc.findings import MOST_FINDINGS, Finding, bounded_findings, merge_findings, public_findings
from svc_cli.processes.diagnosis import allowed_by
from svc_cli.processes.registration import Published, Registration, published_lists, registered_processes
from svc_server.diagnosis import Reporter

ROOT = Path(__file__).parents[3]
FAILING = Finding("view.failing", "test.one", "A view fails.", subject="names", detail="It broke.")

HOLDER = """
import sys, time
from pathlib import Path
from svc.findings import Finding
from svc_cli.processes.registration import Registration
registration = Registration(Path(sys.argv[1]), "worker")
registration.publish([Finding("a.b", "server", "It is wrong.")], ["one", "two"])
print("published", flush=True)
time.sleep(600)
"""


@pytest.fixture
def registration(tmp_path: Path) -> Registration:
    return Registration(tmp_path, "worker")


def codes(directory: Path) -> list[str]:
    return [finding.code for each in published_lists(directory) for finding in each.findings]


def test_what_a_killed_process_has_published_is_not_believed_and_is_cleared_away(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"published\n"
        (published,) = published_lists(tmp_path)
        assert [(finding.code, finding.process) for finding in published.findings] == [("a.b", "worker")]
        assert published.allowed == ("one", "two")
        assert published_lists(tmp_path, without=holder.pid) == []
        os.kill(holder.pid, signal.SIGKILL)
    assert published_lists(tmp_path) == []
    registration = Registration(tmp_path, "worker")
    assert len(list((tmp_path / "processes").iterdir())) == 1
    registration.publish([FAILING], None)
    assert len(list((tmp_path / "processes").iterdir())) == 2
    registration.close()
    assert list((tmp_path / "processes").iterdir()) == []


def test_a_finding_is_logged_when_it_begins_and_when_it_ends(
    tmp_path: Path, registration: Registration, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "svc.findings")
    reporter = Reporter(registration, "worker", None)
    first = reporter.tell([FAILING])
    again = reporter.tell([Finding(*FAILING.identity[:2], "Other words.", subject="names", detail="New.")])
    reporter.tell([])
    assert [(line.levelname, line.fields["code"]) for line in caplog.records] == [
        ("WARNING", "view.failing"),
        ("INFO", "view.failing"),
    ]
    assert first[0].since_ms == again[0].since_ms
    assert (first[0].process, again[0].detail) == ("worker", "New.")
    assert codes(tmp_path) == []


def test_a_plugin_that_says_a_million_things_fills_no_file(
    tmp_path: Path, registration: Registration, caplog: pytest.LogCaptureFixture
) -> None:
    reporter = Reporter(registration, "worker", None)
    many = [
        Finding("job.failing", "test.one", "x" * 10_000, subject=str(n), detail="\0" * 9999)
        for n in range(5000)
    ]
    told = reporter.tell(many)
    assert len(told) == MOST_FINDINGS
    (more,) = [finding for finding in told if finding.code == "server.more"]
    assert more.detail == "4901 more findings."
    (file,) = (tmp_path / "processes").glob("*.findings")
    assert file.stat().st_size < 4 * 1024 * 1024
    assert len(codes(tmp_path)) == MOST_FINDINGS
    # One that says something else each time is one thing that is wrong, and one line.
    caplog.clear()
    for number in range(1000):
        reporter.tell([Finding("job.failing", "test.one", "A job fails.", detail=str(number))])
    assert len([line for line in caplog.records if line.levelname == "WARNING"]) == 1
    registration.close()


def test_what_cannot_be_written_down_is_told_all_the_same(tmp_path: Path, registration: Registration) -> None:
    registration.publish([], None)
    (file,) = (tmp_path / "processes").glob("*.findings")
    file.with_suffix(".part").mkdir()
    registration.publish([FAILING], None)
    assert codes(tmp_path) == ["server.unpublished"]
    file.with_suffix(".part").rmdir()
    registration.publish([FAILING], None)
    assert codes(tmp_path) == ["view.failing"]
    registration.close()
    assert registered_processes(tmp_path) == []


def test_several_processes_say_it_once() -> None:
    early = Finding("a.b", "database", "It is wrong.", process="worker", since_ms=5)
    late = Finding("a.b", "database", "It is wrong.", process="background", since_ms=9, detail="It broke.")
    merged = merge_findings([FAILING, late], [early], [late])
    assert [finding.code for finding in merged] == ["a.b", "view.failing"]
    assert (merged[0].since_ms, merged[0].process, merged[0].detail) == (5, "background, worker", "It broke.")


def test_strangers_read_neither_subject_nor_detail() -> None:
    others = [
        Finding("view.failing", "test.one", "A view fails.", "Wait.", "worker", 7, name) for name in "xy"
    ]
    assert public_findings([FAILING, *others]) == [
        {
            "code": "view.failing",
            "source": "test.one",
            "message": "A view fails.",
            "advice": "Wait.",
            "since_ms": 7,
        }
    ]


def test_texts_are_shortened() -> None:
    (short,) = bounded_findings([Finding("a.b", "c", "d" * 5000)])
    assert len(short.message) == 1000


def test_the_servers_word_counts_on_what_is_allowed() -> None:
    assert allowed_by([], None) is None
    assert allowed_by([], ("a",)) == ("a",)
    assert allowed_by([Published((), ("b",)), Published((), ("c", "b"))], ("a",)) == ("b", "c")
    assert allowed_by([Published((), ("b",)), Published((), None)], ("a",)) is None


def test_the_documentation_has_every_code() -> None:
    families = "database|plugin|view|job|check|command|auth|background|server"
    used = set()
    for path in (ROOT / "core").rglob("*.py"):
        text = path.read_text()
        used |= set(re.findall(rf'Finding\(\s*f?"((?:{families})\.[a-z-]+)"', text))
    from svc.plugins import HealthStatus, ProblemKind

    used |= {f"plugin.{kind.value}" for kind in ProblemKind} | {"plugin.start-failed", "plugin.stop-failed"}
    used |= {f"check.{status.value}" for status in HealthStatus if status is not HealthStatus.HEALTHY}
    table = (
        (ROOT / "docs" / "operating.md").read_text().partition("### What is wrong")[2].partition("\n## ")[0]
    )
    documented = set(re.findall(rf"`((?:{families})\.[a-z-]+)`", table))
    assert used <= documented | {code for code in used if code.startswith("database.")}
    assert documented <= used | {"database.read-only", "database.full", "database.latched"}
