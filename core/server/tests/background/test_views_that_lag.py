"""What is said of a view that does not get on, or is far behind."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from svc_server.background import followers
from svc_server.background.followers import FAR_BEHIND, Feed, ViewFollower


@pytest.mark.parametrize(
    ("behind", "is_stuck", "codes"),
    [
        (0, False, []),
        (FAR_BEHIND, False, []),
        (FAR_BEHIND + 1, False, ["view.behind"]),
        (1, True, ["view.stuck"]),
        (FAR_BEHIND + 1, True, ["view.stuck"]),
    ],
)
def test_a_view_that_lags(
    monkeypatch: pytest.MonkeyPatch, behind: int, is_stuck: bool, codes: list[str]
) -> None:
    database: Any = SimpleNamespace(head=lambda: SimpleNamespace(sequence=10 + behind))
    feed = Feed(database)
    reader: Any = None
    follower = ViewFollower("it", "hello", reader, feed, lambda text: None)
    follower.state = msgspec.structs.replace(follower.state, applied=10)
    assert [one.code for one in follower.findings()] in ([], ["view.behind"])
    if is_stuck:
        monkeypatch.setattr(followers, "STUCK_SECONDS", -1.0)
    found = list(follower.findings())
    assert [one.code for one in found] == codes
    assert all(one.subject == "it" and one.source == "hello" for one in found)
