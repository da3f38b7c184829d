"""The rules of scoped keys: what decides, and what making them ready costs."""

from __future__ import annotations

import re
import tracemalloc

import pytest

from svc.pipeline import scoped_rules
from svc.pipeline.scoped_rules import RuleSet, compiled_rules
from svc.plugins.contracts import Operation, ScopedRule

READ, LIST = Operation.READ, Operation.LIST
ON_THE_WAY = READ.bit | LIST.bit


def rules(*pairs: tuple[str, str]) -> RuleSet:
    return RuleSet(tuple(ScopedRule(glob, flags) for glob, flags in pairs))


def test_the_first_rule_that_matches_decides_wherever_it_stands() -> None:
    found = rules(
        ("/a/secret/**", "--------"), ("/**/*.key", "--------"), ("/a/**", "-r------"), ("/*/b", "c-------")
    )
    expected = {
        ("a",): READ.bit,
        ("a", "b"): READ.bit,
        ("a", "x.key"): 0,
        ("a", "secret"): 0,
        ("a", "secret", "b"): 0,
        ("c", "b"): Operation.CREATE.bit,
        ("c", "d"): 0,
        (): 0,
    }
    assert {path: found.mask(path, directory=False) for path in expected} == expected


@pytest.mark.parametrize(
    ("glob", "on_the_way", "elsewhere"),
    [
        ("/a/b/c", [(), ("a",), ("a", "b")], [("b",), ("a", "c"), ("a", "b", "d")]),
        ("/a/b/**", [(), ("a",)], [("b",)]),
        ("/a/*/c", [(), ("a",), ("a", "x")], [("b",), ("a", "x", "d")]),
        ("/a/x*/**/c", [(), ("a",), ("a", "xy"), ("a", "xy", "d", "e")], [("a", "y")]),
        ("/**/c", [(), ("a",), ("a", "b")], []),
    ],
)
def test_directories_on_the_way_to_what_a_rule_allows_are_listed(
    glob: str, on_the_way: list[tuple[str, ...]], elsewhere: list[tuple[str, ...]]
) -> None:
    allowing, denying = rules((glob, "-r------")), rules((glob, "--------"))
    for path in on_the_way:
        assert allowing.mask(path, directory=True) == ON_THE_WAY
        assert allowing.mask(path, directory=False) == 0
        assert denying.mask(path, directory=True) == 0
    for path in elsewhere:
        assert allowing.mask(path, directory=True) == 0


def test_all_below_is_allowed_where_no_rule_before_denies_a_part() -> None:
    found = rules(
        ("/a/x/**", "--------"), ("/a/**", "-r------"), ("/b/*/y/**", "--------"), ("/b/**", "-r------")
    )
    assert found.allows_below(READ, ("a", "y"))
    assert not found.allows_below(READ, ("a",))
    assert found.allows_below(READ, ("b", "x", "z"))
    assert not found.allows_below(READ, ("b", "x"))
    assert found.parts(READ, ()) == ((("a",), False), (("b",), False))
    assert found.parts(READ, ("a", "y")) == ((("a", "y"), True),)


def test_literal_segments_are_no_part_of_an_expression(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    real = re.compile

    def compile(pattern: str, *flags: int) -> re.Pattern[str]:
        compiled.append(pattern)
        return real(pattern, *flags)

    monkeypatch.setattr("svc.globs.re.compile", compile)
    found = rules(
        ("/literal/" * 100, "-r------"), ("/literal/a/**", "-r------"), ("/literal/*.md", "-r------")
    )
    assert found.mask(("literal", "x.md"), directory=False) == READ.bit
    assert found.parts(READ, ())
    assert compiled
    assert not any("literal" in pattern for pattern in compiled)


def size_of(segments: int) -> int:
    globs = ["/" + f"{number}/" * segments for number in range(5)]
    tracemalloc.start()
    kept = rules(*((glob, "-r------") for glob in globs))
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept.mask((), directory=True)
    return size


def test_memory_grows_with_the_segments_and_not_with_their_square() -> None:
    assert size_of(2_000) < 3 * size_of(1_000)


def test_rules_are_made_ready_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    monkeypatch.setattr("svc.executor.pause", lambda: turns.append(1))
    rules(*((f"/*{number}", "-r------") for number in range(1_000)))
    assert len(turns) >= 3


def test_what_is_kept_ready_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoped_rules, "_KNOWN_BYTES", 1_000_000)
    kept = [(ScopedRule(f"/{number}/" + "a" * 1_000, "-r------"),) for number in range(200)]
    for one in kept:
        assert compiled_rules(one) is compiled_rules(one)
    assert len(scoped_rules._by_rules) < 30
    assert len(scoped_rules._by_object) < 30
