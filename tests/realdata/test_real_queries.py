"""Queries over Debian's package descriptions and Python's sources give what a look at every file gives."""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from svc_query.indexing import finish_work

from long_runs import Extent
from query_model.semantics import Row, match
from realdata.served_queries import Served, leaf, served, words_of

EXTENT = Extent("REALDATA")
PACKAGES = {
    "glob": "**/*.json",
    "indexes": [
        {"name": "name", "type": ["exact", "trigram", "phonetic"]},
        {"name": "maintainer", "type": ["exact", "trigram", "phonetic"]},
        {"name": "section", "type": "exact"},
        {"name": "size", "type": "exact", "value_type": "integer"},
        {"name": "tags", "type": "exact", "source": ["tags", ""]},
        {"name": "depends", "type": ["exact", "trigram"], "source": ["depends", ""]},
        {"name": "description", "type": ["trigram", "fulltext"]},
    ],
}
SOURCES = {
    "glob": "**/*.py",
    "parser": "text",
    "indexes": [
        {"name": "text", "type": ["trigram", "fulltext"], "value_type": "text"},
        {"name": "@filename", "type": ["exact", "trigram"]},
        {"name": "@size", "type": "exact"},
    ],
}

Json = Any


def packages() -> list[dict[str, Json]]:
    """What apt knows of packages; a document for each."""
    if shutil.which("apt-cache") is None:
        return []
    done = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=False)
    found = []
    for paragraph in done.stdout.split("\n\n"):
        members = dict(re.findall(r"^([\w-]+): ((?:.*)(?:\n[ \t].*)*)", paragraph, re.MULTILINE))
        if "Package" not in members:
            continue
        found.append(
            {
                "name": members["Package"],
                "maintainer": members.get("Maintainer", "").partition(" <")[0],
                "section": members.get("Section"),
                "size": int(members.get("Size", "0")),
                "tags": re.split(r",\s*", members["Tag"]) if "Tag" in members else [],
                "depends": re.split(r"\s*[,|]\s*", members["Depends"]) if "Depends" in members else [],
                "description": members.get("Description", ""),
            }
        )
    return found


def row_of(path: tuple[str, ...], size: int, content: dict[str, Json]) -> Row:
    fields = {name: value if isinstance(value, list) else [value] for name, value in content.items()}
    return Row(path, size, "", 0, 0, "", {name: values for name, values in fields.items() if values})


@pytest.fixture(scope="module")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    found = packages()
    if len(found) < 1_000:
        pytest.skip("apt-cache knows no packages here")
    chosen = random.Random(1).sample(found, EXTENT.scaled(3_000, most=len(found)))
    with served(tmp_path_factory.mktemp("debian") / "x.svcdb", PACKAGES) as (service, database):
        for start in range(0, len(chosen), 1_000):
            with database.transaction() as transaction:
                for number, content in enumerate(chosen[start : start + 1_000], start):
                    encoded = json.dumps(content).encode()
                    path = (content["name"][0], f"{number}-{content['name']}.json")
                    transaction.put(path, encoded, content_type="application/json")
                    service.rows.append(row_of(path, len(encoded), content))
        # Many files at once are a job of the background process, which is not here.
        assert finish_work(database)
        encoded = json.dumps(PACKAGES).encode()
        service.rows.append(row_of((".svc-config", "indexes.json"), len(encoded), {}))
        yield service


def test_packages_are_found_by_what_they_are(debian: Served) -> None:
    """Random filters over all exact fields and pieces of texts."""
    rng = random.Random(2)

    def any_leaf() -> dict[str, Json]:
        row = rng.choice(debian.rows)
        name = rng.choice(["name", "maintainer", "section", "size", "tags", "depends", "description"])
        values = row.fields.get(name)
        if not values:
            return leaf(name, "exists", rng.random() < 0.5)
        value = rng.choice(values)
        if name == "size":
            return leaf("size", rng.choice(["gt", "lte", "eq", "ne"]), value)
        if value is None:
            return leaf(name, "eq", None)
        start = rng.randrange(max(1, len(value) - 3))
        piece = value[start : start + rng.randint(1, 8)]
        operators = ["contains"] if name == "description" else ["eq", "prefix", "ne", "gte"]
        if name in ("name", "maintainer", "depends"):
            operators.append("contains")
        op = rng.choice(operators)
        if op == "contains":
            return leaf(name, op, piece or value)
        return leaf(name, op, value[: rng.randint(1, 6)] if op == "prefix" else value)

    for _ in range(EXTENT.scaled(150)):
        parts = [any_leaf() for _ in range(rng.randint(1, 3))]
        where = parts[0] if len(parts) == 1 else {rng.choice(["and", "or"]): parts}
        if rng.random() < 0.2:
            where = {"not": where}
        found = debian.paths("/", where)
        assert found == debian.expected(lambda row, where=where: match(where, row) is not None), where


def test_descriptions_are_found_by_their_words(debian: Served) -> None:
    rng = random.Random(3)
    texts = {row.path: words_of(row.fields.get("description", [""])[0]) for row in debian.rows}
    asked = 0
    while asked < EXTENT.scaled(60):
        one = [word for word in rng.choice(list(texts.values())) if word.isascii()]
        if len(one) < 3:
            continue
        asked += 1
        first, second = rng.sample(one, 2)
        place = rng.randrange(len(one) - 1)
        phrase = one[place : place + 2]
        for text, holds in (
            (f"{first} {second}", lambda words, a=first, b=second: a in words and b in words),
            (f"{first} OR {second}", lambda words, a=first, b=second: a in words or b in words),
            (f"{first} -{second}", lambda words, a=first, b=second: a in words and b not in words),
            (
                f'"{" ".join(phrase)}"',
                lambda words, pair=phrase: any(words[at : at + 2] == pair for at in range(len(words) - 1)),
            ),
            (f"{first[:3]}*", lambda words, a=first[:3]: any(word.startswith(a) for word in words)),
        ):
            if first == second or {"or", "and", "not"} & {first, second, *phrase}:
                continue
            found = debian.paths("/", leaf("description", "search", text))
            expected = debian.expected(lambda row, holds=holds: holds(texts[row.path]))
            assert found == expected, (text, sorted(found ^ expected)[:5])


def test_maintainers_are_found_with_typing_errors(debian: Served) -> None:
    """The name itself is among the hits, and so is one with two letters exchanged."""
    rng = random.Random(4)
    names = sorted(
        {name for row in debian.rows for name in row.fields.get("maintainer", ()) if len(name) > 8}
    )
    for name in rng.sample(names, min(len(names), EXTENT.scaled(30))):
        own = debian.expected(lambda row, name=name: row.fields.get("maintainer") == [name])
        at = rng.randrange(1, len(name) - 2)
        wrong = name[:at] + name[at + 1] + name[at] + name[at + 2 :]
        assert own <= debian.paths("/", leaf("maintainer", "fuzzy", wrong, fuzziness=1)), (name, wrong)
        assert own <= debian.paths("/", leaf("maintainer", "phonetic", name)), name
        assert own <= debian.paths("/", leaf("maintainer", "similar", name)), name


@pytest.mark.timeout(300)
def test_sources_of_python_are_found_by_what_stands_in_them(tmp_path: Path) -> None:
    library = Path(sysconfig.get_paths()["stdlib"])
    files = sorted(one for one in library.glob("*/*.py") if 0 < one.stat().st_size < 200_000)
    rng = random.Random(5)
    chosen = rng.sample(files, min(len(files), EXTENT.scaled(150, most=2_000)))
    with served(tmp_path / "x.svcdb", SOURCES) as (service, database):
        texts: dict[str, str] = {}
        with database.transaction() as transaction:
            for file in chosen:
                content = file.read_bytes()
                path = (file.parent.name, file.name)
                try:
                    texts["/" + "/".join(path)] = content.decode()
                except UnicodeDecodeError:
                    continue
                transaction.put(path, content, content_type="text/x-python")
        assert finish_work(database)
        for _ in range(EXTENT.scaled(30)):
            text = rng.choice(list(texts.values()))
            start = rng.randrange(max(1, len(text) - 12))
            piece = text[start : start + rng.randint(3, 12)]
            if not piece.strip():
                continue
            found = service.paths("/", leaf("text", "contains", piece))
            expected = {path for path, one in texts.items() if piece.casefold() in one.casefold()}
            assert found == expected, (piece, sorted(found ^ expected)[:5])
