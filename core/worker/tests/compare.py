"""Runs the corpus against gunicorn's own gevent worker, and writes where it differs as a table.

Usage: ``python compare.py ../../../../docs/operating-worker.md``, when the corpus or gunicorn changes.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from corpus import CASES, Case
from gunicorn_process import Gunicorn
from observing import Outcome, observe

BEGIN, END = "<!-- stock worker: begin -->\n", "<!-- stock worker: end -->"
_HEADING = "| Exchange | Rule | `http1` | stock `gevent` |\n|---|---|---|---|\n"


def observe_stock(cases: Iterable[Case]) -> dict[str, str]:
    """Returns what the stock worker did in each case, by name."""
    with tempfile.TemporaryDirectory() as directory:
        server = Gunicorn(Path(directory), "--keep-alive", "30", worker="gevent", ECHO_FILE=__file__)
        try:
            return {case.name: str(observe(case, server.address, [case.data], 2.0)) for case in cases}
        finally:
            server.end()


def wanted(case: Case) -> str:
    """What the case wants, in the words of the table."""
    return str(Outcome(case.statuses, case.closes))


def table_of(page: str) -> list[tuple[str, str, str, str]]:
    """Returns the rows of the table in a page."""
    text = page.partition(BEGIN)[2].partition(END)[0]
    return [
        tuple(row) for row in re.findall(r"^\| (.+?) \| (.+?) \| (.+?) \| (.+?) \|$", text, re.MULTILINE)[1:]
    ]


def main() -> None:
    """Writes the table into the page that is named."""
    path = Path(sys.argv[1])
    before, _, rest = path.read_text().partition(BEGIN)
    found = observe_stock(CASES)
    rows = [
        f"| {case.name} | {case.rule} | {wanted(case)} | {found[case.name]} |\n"
        for case in CASES
        if found[case.name] != wanted(case)
    ]
    path.write_text(before + BEGIN + _HEADING + "".join(rows) + END + rest.partition(END)[2])
    print(f"{len(rows)} of {len(CASES)} differ")


if __name__ == "__main__":
    main()
