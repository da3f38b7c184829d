"""The documentation's table of where gunicorn's own worker differs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from compare import observe_stock, table_of, wanted
from corpus import CASES

from svc_worker.settings import VARIABLES

PAGE = (Path(__file__).parents[3] / "docs" / "operating-worker.md").read_text()
README = (Path(__file__).parents[1] / "README.md").read_text()
BY_NAME = {case.name: case for case in CASES}


def test_the_table_says_what_the_corpus_wants() -> None:
    rows = table_of(PAGE)
    assert rows
    for name, rule, ours, _ in rows:
        assert (rule, ours) == (BY_NAME[name].rule, wanted(BY_NAME[name]))


def test_the_stock_worker_does_what_the_table_says() -> None:
    # Where it gives no answer, that is a matter of time.
    rows = {name: stock for name, _, _, stock in table_of(PAGE) if not stock.startswith("nothing")}
    assert observe_stock(BY_NAME[name] for name in rows) == rows


@pytest.mark.parametrize("page", [PAGE, README], ids=["page", "readme"])
def test_the_page_has_every_variable(page: str) -> None:
    rows = re.findall(r"^\| `(SVC_\w+)` \| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert rows == [(variable.name, str(variable.default), variable.meaning) for variable in VARIABLES]
