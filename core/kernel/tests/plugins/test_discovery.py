"""What is installed is read once until it changes, and one distribution that can't be read hides no other."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from svc.plugins import ProblemKind, forget_installed, load_plugins
from svc.plugins.discovery import find_installed


@pytest.fixture
def readings(monkeypatch):
    """The readings of all entry points that were made."""
    made = []
    read = importlib.metadata.entry_points

    def counted(**wanted):
        made.append(wanted)
        return read(**wanted)

    monkeypatch.setattr(importlib.metadata, "entry_points", counted)
    forget_installed()
    return made


def metadata_of(distributions, name):
    place = next(path for path in distributions.paths if name in path)
    return next(Path(place).glob("*.dist-info"))


def test_it_is_read_once_until_something_is_installed_or_removed(install, readings, distributions):
    first = install("first")
    assert first in find_installed()[0]
    load_plugins([first])
    assert len(readings) == 1
    second = install("second")
    assert {first, second} <= {*find_installed()[0]}
    assert len(readings) == 2
    metadata = metadata_of(distributions, "second")
    metadata.rename(metadata.parent / "gone")
    assert second not in find_installed()[0]
    assert len(readings) == 3


def test_what_was_rewritten_in_place_is_found_when_the_reading_is_forgotten(install, distributions):
    plugin_id = install("first")
    assert plugin_id in find_installed()[0]
    points = metadata_of(distributions, "first") / "entry_points.txt"
    points.write_text(points.read_text().replace(plugin_id, "test.renamed"))
    forget_installed()
    assert "test.renamed" in find_installed()[0]


@pytest.mark.parametrize("content", [b"[console_scripts]\nno value\n", b"[a]\n\xff\xfe = b\n"])
def test_entry_points_that_cannot_be_read_are_a_problem_of_their_distribution(
    install, distributions, content
):
    good = install("good")
    distributions.install("unrelated", modules={"unrelated": ""})
    (metadata_of(distributions, "unrelated") / "entry_points.txt").write_bytes(content)
    forget_installed()
    plugins = load_plugins()
    assert good in plugins.descriptors
    [problem] = [one for one in plugins.problems if one.plugin_id.startswith("distribution:")]
    assert problem.plugin_id == "distribution:unrelated-1.0.dist-info"
    assert problem.kind is ProblemKind.BROKEN


def test_metadata_that_cannot_be_read_are_a_problem_of_their_plugin(install, distributions):
    good, bad = install("good"), install("bad")
    (metadata_of(distributions, "bad") / "METADATA").write_bytes(b"Name: \xff\xfe\n")
    plugins = load_plugins()
    assert good in plugins.descriptors
    assert bad not in plugins.descriptors
    assert [one.kind for one in plugins.problems if one.plugin_id == bad] == [ProblemKind.BROKEN]
