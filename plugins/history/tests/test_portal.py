"""The pages of the history keep the contracts of the portal, and show what happened."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import quote

import pytest
from svc_portal.api import EntryAction
from svc_portal.testing import OWN_FORM, EntryActionContract, PortalPageContract
from svc_portal.testing.contract import NOBODY

from svc.plugin import Database, Identity
from svc_history.portal.actions import BlameAction, HistoryAction
from svc_history.portal.blame import BlamePage
from svc_history.portal.comparison import ComparePage
from svc_history.portal.history import HistoryPage
from svc_history.portal.log import CommitPage, LogPage
from svc_testing import PathRights
from svc_versions.forks import create_fork
from svc_versions.snapshots import create_snapshot

HOSTILE = "<img src=x onerror=alert(1)>\"'.txt"
QUOTED = "%3Cimg%20src=x%20onerror=alert(1)%3E%22'.txt"


READER = Identity("00000000-0000-0000-0000-000000000009", "ann", rights=PathRights({"/a/text.txt": "r"}))
VERSION = r'name="version" value="([0-9a-f]{64})"'


def rows_of(page: str) -> list[str]:
    """The rows of a log, by their versions."""
    return re.findall(r"<code>([0-9a-f]{10})</code>.*?</tr>", page, re.DOTALL)


class OfTheHistory(PortalPageContract):
    plugin_id = "history"
    beside = ("versions",)

    def fill(self, database: Database) -> None:
        for number, text in enumerate(("one\ntwo\nthree\n", "one\n<b>2</b> two\nthree\n", "four\n")):
            with database.transaction(message=f"write <b>{number}</b>") as changes:
                changes.put(("a", "text.txt"), text.encode(), content_type="text/plain")
                changes.put(("a", "data.bin"), bytes([0, number]), content_type="image/png")
                changes.put(("a", HOSTILE), f"<script>{number}</script>".encode(), content_type="text/plain")
                changes.put(("b", f"{number}.txt"), b"x", content_type="text/plain")
            if not number:
                create_snapshot(database, "first")
                create_fork(database, "draft")
        with database.transaction() as changes:
            changes.delete(("b", "0.txt"))
        with database.transaction(ref="forks/draft") as changes:
            changes.put(("a", "text.txt"), b"draft\n", content_type="text/plain")


class TestHistoryPage(OfTheHistory):
    urls = (
        "history/a/text.txt",
        "history/a",
        "history/a?over=snapshots",
        "history/a/data.bin",
        f"history/a/{QUOTED}",
        "history/a/none",
    )

    @pytest.fixture
    def extension(self) -> HistoryPage:
        return HistoryPage()

    def test_it_lists_who_changed_what(self, served: Any) -> None:
        client, _ = served
        page = client.simulate_get("/portal/history/a/text.txt").text
        assert page.count('<span class="what modified">modified</span>') == 2
        assert page.count('<span class="what added">added</span>') == 1
        assert page.count("<line class=") == 3
        assert "write &lt;b&gt;2&lt;/b&gt;" in page
        assert "1 deleted" in client.simulate_get("/portal/history/b").text

    def test_others_see_no_way_to_restore(self, served: Any) -> None:
        client, mode = served
        assert ">Restore</a>" in client.simulate_get("/portal/history/a/text.txt").text
        mode.identity = READER
        page = client.simulate_get("/portal/history/a/text.txt").text
        assert ">Restore</a>" not in page
        assert 'class="what modified"' in page
        assert "write" not in page  # the message may name what is hidden
        assert client.simulate_get("/portal/history/b").status_code == 404


class TestComparePage(OfTheHistory):
    urls = (
        "compare/a/text.txt?from=first&to=HEAD",
        "compare/a/data.bin?from=first&to=HEAD",
        f"compare/a/{QUOTED}?from=first&to=HEAD",
        "compare/a?from=first",
        "compare/b?from=HEAD&to=forks/draft",
    )

    @pytest.fixture
    def extension(self) -> ComparePage:
        return ComparePage()

    def test_without_versions_it_asks_for_them_and_looks_at_nothing(self, served: Any) -> None:
        client, mode = served
        self.check(client.simulate_get("/portal/compare/a"), "compare/a")
        mode.identity = NOBODY
        for path in ("b", "missing"):
            page = client.simulate_get(f"/portal/compare/{path}")
            assert page.status_code == 200
            assert ".txt" not in page.text

    def test_words_that_differ_are_marked(self, served: Any) -> None:
        client, _ = served
        page = client.simulate_get(f"/portal/compare/a/text.txt?from=first&to={version_of(served, 1)}").text
        assert "<mark>&lt;b&gt;2&lt;/b&gt; </mark>two" in page
        assert page.count('class="line old"') == page.count('class="line new"') == 1

    def test_a_fork_is_compared_by_lists(self, served: Any) -> None:
        page = served[0].simulate_get("/portal/compare/?from=HEAD&to=forks/draft").text
        for row in ("/a/text.txt</a>", ">added</td>", ">deleted</td>", ">modified</td>"):
            assert row in page

    def test_it_restores_and_takes_it_back(self, served: Any) -> None:
        client, mode = served
        page = client.simulate_get("/portal/compare/a/text.txt?from=HEAD&to=first").text
        assert 'value="restore"' in page
        body = f"action=restore&version={re.search(VERSION, page)[1]}"  # type: ignore[index]
        mode.identity, root = READER, mode.identity
        assert (
            'value="restore"' not in client.simulate_get("/portal/compare/a/text.txt?from=HEAD&to=first").text
        )
        refused = client.simulate_post("/portal/compare/a/text.txt", body=body, headers=OWN_FORM)
        assert b"four" in client.simulate_get("/versions/blame/a/text.txt").content
        mode.identity = root
        done = client.simulate_post("/portal/compare/a/text.txt", body=body, headers=OWN_FORM)
        assert refused.headers["location"] == done.headers["location"] == "/portal/history/a/text.txt"
        assert b"three" in client.simulate_get("/versions/blame/a/text.txt").content
        said = client.simulate_get(done.headers["location"], cookies=cookies_of(done)).text
        assert "Restored text.txt from" in said
        snapshot = re.search(r'name="snapshot" value="([^"]+)"', said)[1]  # type: ignore[index]
        body = f"action=restore&snapshot={quote(snapshot)}"
        client.simulate_post("/portal/compare/a/text.txt", body=body, headers=OWN_FORM)
        assert b"four" in client.simulate_get("/versions/blame/a/text.txt").content

    def test_what_is_gone_comes_back_without_an_undo(self, served: Any) -> None:
        client, _ = served
        body = f"action=restore&version={version_of(served, 0)}"
        done = client.simulate_post("/portal/compare/b/0.txt", body=body, headers=OWN_FORM)
        said = client.simulate_get(done.headers["location"], cookies=cookies_of(done)).text
        assert "Restored 0.txt" in said
        assert ">Undo<" not in said
        refused = client.simulate_post("/portal/compare/b", body="action=other", headers=OWN_FORM)
        assert refused.status_code == 400

    def test_large_texts_are_not_compared(self, served: Any) -> None:
        client, _ = served
        client.simulate_put(
            "/system/plugins/history/configuration",
            json={"compare_size": 10},
        )
        page = client.simulate_get("/portal/compare/a/text.txt?from=HEAD&to=first").text
        assert "too large to be compared" in page
        assert "beside" not in page


def version_of(served: Any, number: int) -> str:
    """The version that a commit of HEAD made; 0: the first."""
    commits = served[0].simulate_get("/versions/log").json["commits"]
    return str(commits[-1 - number]["version"])


def cookies_of(answer: Any) -> dict[str, str]:
    return {name: cookie.value for name, cookie in answer.cookies.items()}


class TestBlamePage(OfTheHistory):
    urls = ("blame/a/text.txt", "blame/a", "blame/a/data.bin", f"blame/a/{QUOTED}", "blame/a/text.txt?line=2")

    @pytest.fixture
    def extension(self) -> BlamePage:
        return BlamePage()


class TestLogPage(OfTheHistory):
    urls = ("log", "log?before=3", "log?before=x")
    is_for_everyone = True

    @pytest.fixture
    def extension(self) -> LogPage:
        return LogPage()

    def test_pages_neither_repeat_nor_skip(self, served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        client, _ = served
        whole = rows_of(client.simulate_get("/portal/log").text)
        assert len(whole) == 6  # four of HEAD, two of the fork
        for size in (1, 2, 3):
            monkeypatch.setattr("svc_history.portal.log.ROWS", size)
            found, url = [], "/portal/log"
            while url:
                page = client.simulate_get(url).text
                found += rows_of(page)
                following = re.search(r'<a href="([^"]+)" rel="next"', page)
                url = html.unescape(following[1]) if following else ""
            assert found == whole

    def test_snapshots_and_forks_have_their_places(self, served: Any) -> None:
        page = served[0].simulate_get("/portal/log").text
        assert page.count('<span class="name-of">first</span>') == 2  # HEAD's commit, and the fork's first
        assert page.count('<span class="name-of">draft</span>') == 2
        assert page.count("begins across") == 1
        alone = served[0].simulate_get("/portal/log?fork=none")
        assert alone.status_code == 404


class TestCommitPage(OfTheHistory):
    urls = ("commits/HEAD", "commits/2")

    @pytest.fixture
    def extension(self) -> CommitPage:
        return CommitPage()


class TestEntryActions(EntryActionContract):
    plugin_id = "history"

    @pytest.fixture(params=[HistoryAction, BlameAction])
    def extension(self, request: pytest.FixtureRequest) -> EntryAction:
        return request.param()
