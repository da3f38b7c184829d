"""Globs match as the shell's do, in any order of paths, and end whatever the pattern is."""

from __future__ import annotations

import fnmatch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc_files.globs import Glob, PathMatcher

from .path_strategies import PATH  # noqa: TID252


class TestGlobs:
    @given(st.text("ab*?[]!-", min_size=1, max_size=10), st.text("ab-]", min_size=1, max_size=8))
    def test_one_segment_matches_as_the_shell_does(self, pattern: str, name: str) -> None:
        if pattern == "**":
            return
        assert Glob(pattern).matches((name,), 0) == fnmatch.fnmatchcase(name, pattern)

    @given(st.lists(st.sampled_from(["a", "b", "*", "**"]), min_size=1, max_size=6), PATH)
    def test_two_stars_match_as_a_search_over_all_ways_does(
        self, parts: list[str], path: tuple[str, ...]
    ) -> None:
        path = tuple("ab"[len(segment) % 2] for segment in path)
        assert Glob("/" + "/".join(parts)).matches(path, 0) == _fits(parts, path)

    @given(st.text(min_size=1, max_size=20), PATH)
    def test_any_text_is_a_pattern(self, pattern: str, path: tuple[str, ...]) -> None:
        Glob(pattern).matches(path, 0)

    @given(
        st.lists(st.sampled_from(["**", "*", "a", "b", "ab"]), min_size=1, max_size=5),
        st.booleans(),
        st.lists(st.lists(st.sampled_from(["a", "b", "ab"]), min_size=1, max_size=5).map(tuple), max_size=12),
        st.lists(st.sampled_from(["a", "b", "ab"]), max_size=2).map(tuple),
    )
    def test_paths_in_any_order_match_as_each_by_itself(
        self, parts: list[str], absolute: bool, found: list[tuple[str, ...]], base: tuple[str, ...]
    ) -> None:
        glob = Glob("/" * absolute + "/".join(parts))
        matcher = PathMatcher(glob, len(base))
        for path in (base + one for one in found):
            is_name = len(parts) == 1 and parts != ["**"] and not absolute
            if is_name:
                expected = _fits(parts, path[-1:])
            else:
                expected = _fits(parts, path) or (not absolute and _fits(parts, path[len(base) :]))
            assert matcher.matches(path) is expected
            assert glob.matches(path, len(base)) is expected
            if expected:
                above = [path[:length] for length in range(len(base), len(path))]
                assert all(matcher.may_fit_below(directory) for directory in above)

    def test_a_hostile_pattern_ends(self) -> None:
        """A matcher that tries every way would not come back."""
        assert not Glob("*a" * 500 + "b").matches(("a" * 255,), 0)
        assert not Glob("/".join(["**", "*a*"] * 100) + "/b").matches(("a" * 20,) * 400, 0)


def _fits(pattern: list[str], path: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_fits(pattern[1:], path[skip:]) for skip in range(len(path) + 1))
    return bool(path) and pattern[0] in ("*", path[0]) and _fits(pattern[1:], path[1:])


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("Mu\u0308ller*", "M\u00fcller.txt"),
        ("/a/Mu\u0308ller.txt", "M\u00fcller.txt"),
        ("a/*u\u0308*.txt", "M\u00fcller.txt"),
        ("**/[u\u0308x]nd.txt", "\u00fcnd.txt"),
    ],
)
def test_a_pattern_in_another_unicode_form_fits_the_same_names(pattern: str, name: str) -> None:
    assert Glob(pattern).matches(("a", name), 0)
