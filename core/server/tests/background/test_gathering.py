"""Commits that come thick and fast are taken in together, unless somebody reads the view meanwhile."""

from __future__ import annotations

from svc_server.background.followers import Gathering


def test_single_commits_are_taken_in_soon() -> None:
    gathering = Gathering()
    assert [gathering.pause(1, is_read=False) for _ in range(5)] == [0.05] * 5


def test_many_commits_are_left_alone_longer_and_longer_but_not_for_ever() -> None:
    gathering = Gathering()
    assert [gathering.pause(20, is_read=False) for _ in range(4)] == [0.1, 0.2, 0.25, 0.25]


def test_a_view_that_is_read_or_has_little_to_do_again_is_kept_close() -> None:
    gathering = Gathering()
    for _ in range(4):
        gathering.pause(20, is_read=False)
    assert gathering.pause(20, is_read=True) == 0.05
    assert gathering.pause(20, is_read=False) == 0.1
    assert gathering.pause(2, is_read=False) == 0.05
