"""An index type that fails for some values makes no answer wrong: flushed or not, everywhere or in parts."""

from __future__ import annotations

from typing import Any

import pytest
from svc_index_exact.index import ExactIndex

CONFIGURATION = {"glob": "**/*.json", "indexes": [{"name": "t", "type": "exact"}]}


def leaf(op: str, value: Any) -> dict[str, Any]:
    return {"field": "t", "op": op, "value": value}


@pytest.mark.parametrize("flushed", [False, True])
@pytest.mark.parametrize("directory", ["/d", "/d/below"])
def test_no_answer_lacks_what_the_type_did_not_take(
    http: Any, monkeypatch: pytest.MonkeyPatch, flushed: bool, directory: str
) -> None:
    terms = ExactIndex.terms

    def failing(self: Any, value: Any, options: Any) -> Any:
        if value == "m-broken":
            raise ZeroDivisionError("a fault of the type")
        return terms(self, value, options)

    monkeypatch.setattr(ExactIndex, "terms", failing)
    http.write({"/d/.svc-config/indexes.json": CONFIGURATION})
    http.write({f"{directory}/{number}.json": {"t": f"x{number:03d}"} for number in range(300)})
    http.write({f"{directory}/broken.json": {"t": "m-broken"}, f"{directory}/a.json": {"t": "a"}})
    if flushed:
        http.finish()
    broken = f"{directory}/broken.json"
    assert http.paths(leaf("eq", "m-broken"), "/d") == [broken]
    assert http.paths(leaf("lt", "x"), "/d", order_by=[{"field": "t"}]) == [f"{directory}/a.json", broken]
    assert len(http.paths({"not": leaf("eq", "x001")}, "/d", limit=1_000)) == 301
    ordered = http.paths([], "/d", order_by=[{"field": "t"}], limit=3)
    assert ordered == [f"{directory}/a.json", broken, f"{directory}/000.json".replace("000", "0")]
