"""Which names snapshots and forks may have, and where their documents stand."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.errors import InvalidInput
from svc.plugin import reference_name, reference_path
from svc_versions.names import document_path, is_automatic, new_name, reference


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "v1.0",
        "HEAD/a",
        "head",
        "a1" * 31,
        "release/2026/03",
        "ä ö",
        "50%",
        "a%2Fb",
        "x" * 200,
        "日" * 200,
    ],
)
def test_a_printable_name_of_up_to_200_characters_is_taken(name: str) -> None:
    assert new_name(name) == name
    assert document_path("forks", name)[:2] == ("versions", "forks")


@pytest.mark.parametrize(
    "name",
    ["", "x" * 201, "a\nb", "a\0", "\x7f", "a\udc80", "_svc_mine", "a//b", "/a", "a/", ".", "..", "a/../b",
     ".system/x", ".svc-system", "HEAD", "a1" * 32, "A1" * 32],
)  # fmt: skip
def test_what_no_url_can_carry_or_svc_keeps_for_itself_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        new_name(name)
    assert refused.value.details["field"] == "name"


def test_two_spellings_of_one_text_are_one_name() -> None:
    decomposed = unicodedata.normalize("NFD", "é")
    assert new_name(decomposed) == "é"
    assert reference_path(reference("forks", decomposed)) == reference_path(reference("forks", "é"))


def test_names_say_what_svc_made_by_itself() -> None:
    assert is_automatic("_svc_pre_gc_1")
    assert is_automatic("pre-restore-1")
    assert not is_automatic("my pre-restore-1")


@given(st.text(min_size=1, max_size=200))
def test_every_name_that_is_taken_comes_back_from_its_ref(text: str) -> None:
    try:
        name = new_name(text)
    except InvalidInput:
        return
    assert reference_name(reference_path(reference("snapshots", name))) == f"snapshots/{name}"
