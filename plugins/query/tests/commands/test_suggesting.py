"""What is proposed for the documents of a directory, and why."""

from __future__ import annotations

import random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from svc_query.suggesting import Suggestion, suggest_configuration

FIRST = ["Ann", "Ben", "Carla", "Dora", "Émile", "Fritz", "Gül", "Hana"]
LAST = ["Tolstoi", "Müller", "O'Neill", "Smith", "García", "Nowak", "Ødegård", "Kaya"]


def books(count: int) -> list[tuple[tuple[str, ...], str, Any]]:
    rng = random.Random(1)
    return [
        (
            ("books", f"{number % 7}", f"b{number}.json"),
            "application/json",
            {
                "title": " ".join(rng.choice(["war", "peace", "night", "sea", "old"]) for _ in range(3))
                + f" {number}",
                "year": rng.randint(1800, 2020),
                "price": rng.choice([1, 2.5, 10.25]),
                "in_print": rng.random() < 0.5,
                "language": rng.choice(["en", "de", "ru"]),
                "author": {"name": f"{rng.choice(FIRST)} {rng.choice(LAST)} {rng.choice(LAST)}"},
                "tags": rng.sample(["new", "old", "big"], rng.randint(0, 3)),
                "summary": "Once upon a time there was a long story. " * 10,
                "added_at": 1_700_000_000_000 + number,
                "published": f"{rng.randint(1900, 2020)}-03-01",
                "seen_at": 1_700_000_000 + number,
                "nothing": None,
                "chapters": [{"name": f"Chapter {one} of {number} books", "pages": one} for one in range(3)],
                **({"rare": 1} if number == 3 else {}),
            },
        )
        for number in range(count)
    ]


def entries(found: Suggestion) -> dict[str, dict[str, Any]]:
    return {entry["name"]: entry for entry in found.configuration["indexes"]}


def test_each_field_gets_the_types_that_its_values_ask_for() -> None:
    found = suggest_configuration(books(300), ("books",))
    assert found.files == 300
    assert found.configuration["glob"] == "**/*.json"
    fields = entries(found)
    assert fields["title"] == {"name": "title", "type": ["exact", "trigram"], "value_type": "string"}
    assert fields["year"] == {"name": "year", "type": "exact", "value_type": "integer"}
    assert fields["price"] == {"name": "price", "type": "exact", "value_type": "float"}
    assert fields["in_print"] == {"name": "in_print", "type": "exact", "value_type": "boolean"}
    assert fields["language"] == {"name": "language", "type": "exact", "value_type": "string"}
    assert fields["summary"] == {"name": "summary", "type": "fulltext", "value_type": "text"}
    assert fields["added_at"]["value_type"] == "timestamp"
    assert fields["published"]["value_type"] == "timestamp"
    assert fields["seen_at"]["value_type"] == "integer"
    assert fields["tags"] == {"name": "tags", "type": "exact", "value_type": "string", "source": ["tags", ""]}
    assert fields["name"]["type"] == ["exact", "trigram", "phonetic"]
    assert fields["name"]["source"] == ["author", "name"]
    assert fields["chapters.name"]["source"] == ["chapters", "", "name"]
    assert fields["pages"]["source"] == ["chapters", "", "pages"]
    assert "rare" not in fields
    assert "nothing" not in fields


def test_every_choice_has_its_reason() -> None:
    found = suggest_configuration(books(300), ("books",))
    reasons = {reason["field"]: reason for reason in found.reasons}
    assert set(entries(found)) <= set(reasons)
    assert reasons["glob"]["reason"] == "300 of 300 files end in .json"
    assert reasons["language"]["reason"] == "3 different values: equality and groups (in 300 of 300 files)"
    assert reasons["nothing"]["reason"] == "only null (in 300 of 300 files): left out"
    assert reasons["year"]["types"] == ["exact"]


def test_types_that_are_not_there_are_not_proposed() -> None:
    fields = entries(suggest_configuration(books(50), ("books",), frozenset(("exact",))))
    assert fields["name"]["type"] == "exact"
    assert "summary" not in fields
    assert "chapters.name" in fields


def test_files_that_no_parser_reads_get_names_and_times() -> None:
    files = [(("photos", f"p{number}.raw"), "image/x-raw", None) for number in range(5)]
    found = suggest_configuration(files, ("photos",))
    assert found.configuration["glob"] == "*.raw"
    assert list(entries(found)) == ["@filename", "@extension", "@size", "@updated_at"]


def test_without_files_there_is_nothing_to_look_at() -> None:
    assert suggest_configuration([], ()).files == 0


def test_values_of_different_kinds_are_said_so() -> None:
    files = [(("a", f"{number}"), None, {"x": value}) for number, value in enumerate([1, "a", True, None])]
    found = suggest_configuration(files, ("a",))
    assert entries(found)["x"] == {"name": "x", "type": "exact"}
    assert found.configuration["glob"] == "*"
    assert "boolean, integer, string" in found.reasons[1]["reason"]


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=70), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(st.lists(st.tuples(st.lists(st.text(min_size=1), min_size=1, max_size=3).map(tuple), st.none(), JSON)))
def test_any_documents_give_a_configuration_with_names_that_differ(files: Any) -> None:
    found = suggest_configuration(files, ())
    names = [entry["name"] for entry in found.configuration["indexes"]]
    assert names
    assert len(set(names)) == len(names) <= 40
    assert all(entry["type"] for entry in found.configuration["indexes"])
    assert found.files == len(files)
