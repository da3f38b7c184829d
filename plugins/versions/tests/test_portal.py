"""The pages of versions keep the contracts of the portal, and do what they say."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from svc_portal.testing import PortalPageContract
from svc_portal.testing.contract import NOBODY, OWN_FORM, follow, send_form

from svc.plugin import Database, parse_path
from svc_versions.forks import create_fork
from svc_versions.portal.merging import MergePage
from svc_versions.portal.pages import ForkPage, ForksPage, SnapshotPage, SnapshotsPage
from svc_versions.snapshots import create_snapshot

HOSTILE = "<img src=x onerror=alert(1)>\"'"
QUOTED = "%3Cimg%20src=x%20onerror=alert(1)%3E%22'"


UNDO = r'<form method="post" action="/portal/([^"]+)">((?:\s*<input[^>]+>)+)\s*<button class="link">'


class OfVersions(PortalPageContract):
    plugin_id = "versions"
    is_for_everyone = True  # with an account; what root may do is not offered to others

    def fill(self, database: Database) -> None:
        self.database = database
        put(database, {"base.txt": b"base", "both.txt": b"base"})
        create_snapshot(database, HOSTILE, {"<b>": "<script>"})
        create_fork(database, "draft")
        create_fork(database, HOSTILE)
        put(database, {"both.txt": b"ours"})
        create_snapshot(database, "second")
        put(database, {"both.txt": b"theirs!", "new.txt": b"new"}, "forks/draft")
        put(database, {"other.txt": b"new"}, f"forks/{HOSTILE}")


def put(database: Database, files: dict[str, bytes], ref: str = "HEAD") -> None:
    with database.transaction(ref=ref) as changes:
        for name, content in files.items():
            changes.put((name,), content, content_type="text/plain")


def send(served: Any, page: str, **fields: str) -> str:
    """Sends a form, and returns the page that comes next."""
    client, _ = served
    return follow(client, send_form(client, page, urlencode(fields)))


def undo(served: Any, page: str) -> str:
    """Takes back what the message of a page says."""
    form = re.search(UNDO, page)
    assert form, page
    fields = dict(re.findall(r'name="([^"]*)" value="([^"]*)"', form[2]))
    return send(served, form[1], **{name: html.unescape(value) for name, value in fields.items()})


def message(page: str) -> str:
    found = re.search(r'role="(?:status|alert)">\n<p>(.*?)</p>', page)
    assert found, page
    return html.unescape(found[1])


def head(served: Any) -> str:
    return str(served[0].simulate_get("/versions/resolve?name=HEAD").json["version"])


class TestSnapshotsPage(OfVersions):
    urls = ("versions", "versions?name=IMG", "versions?after=x.y")
    forms = (("versions", "action=create&name=third"), ("versions", "action=restore&name=none"))

    @pytest.fixture
    def extension(self) -> SnapshotsPage:
        return SnapshotsPage()

    def test_they_come_and_go(self, served: Any) -> None:
        put_new = served[0].simulate_get("/portal/versions").text
        assert put_new.count('<th scope="row"') == 2
        assert message(send(served, "versions", action="create", name="x")).startswith("The snapshot second")
        page = send(served, "versions", action="rename", name="second", new_name="renamed")
        assert message(page) == "Renamed second to renamed."
        assert message(undo(served, page)) == "Renamed renamed to second."
        page = send(served, "versions", action="delete", name=HOSTILE)
        assert message(page) == f"Deleted the snapshot {HOSTILE}."
        assert HOSTILE not in page
        page = undo(served, page)
        assert message(page) == f"Made the snapshot {HOSTILE}."
        assert served[0].simulate_get("/versions/snapshots").json["snapshots"][0]["metadata"] == {
            "<b>": "<script>"
        }
        assert message(undo(served, page)) == f"Deleted the snapshot {HOSTILE}."

    def test_one_is_restored_and_taken_back(self, served: Any) -> None:
        before = head(served)
        page = send(served, "versions", action="restore", name=HOSTILE)
        assert message(page).startswith(f"Restored {HOSTILE}. What was there is in the snapshot pre-restore-")
        assert head(served) != before
        undo(served, page)
        assert head(served) == before

    def test_they_are_read_by_pages(self, served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        client, _ = served
        monkeypatch.setattr("svc_versions.portal.pages.ROWS", 1)
        url, found = "/portal/versions", []
        while url:
            page = client.simulate_get(url).text
            found += re.findall(r'<th scope="row" class="name"><a[^>]+>([^<]+)<', page)
            following = re.search(r'<a href="([^"]+)" rel="next"', page)
            url = html.unescape(following[1]) if following else ""
        assert [html.unescape(one) for one in found] == ["second", HOSTILE]

    def test_others_may_look_alone(self, served: Any) -> None:
        client, mode = served
        mode.identity = NOBODY
        for url in (
            "versions",
            "versions/forks",
            "versions/snapshot?name=second",
            "versions/fork?name=draft",
        ):
            page = client.simulate_get(f"/portal/{url}").text
            assert 'name="action"' not in page, url
        before = head(served)
        for fields in ({"action": "restore", "name": "second"}, {"action": "delete", "name": "second"}):
            assert 'role="alert"' in send(served, "versions", **fields)
        assert 'role="alert"' in send(served, "versions/forks", action="promote", name="draft")
        assert head(served) == before


class TestSnapshotPage(OfVersions):
    urls = (
        "versions/snapshot?name=second",
        f"versions/snapshot?name={QUOTED}",
        f"versions/snapshot?name={QUOTED}&do=confirm",
    )

    @pytest.fixture
    def extension(self) -> SnapshotPage:
        return SnapshotPage()


class TestForksPage(OfVersions):
    urls = ("versions/forks",)
    forms = (("versions/forks", "action=create&name=third&base=second"),)

    @pytest.fixture
    def extension(self) -> ForksPage:
        return ForksPage()

    def test_they_come_and_go(self, served: Any) -> None:
        page = send(served, "versions/forks", action="create", name="a/b", base="second")
        assert message(page) == "Made the fork a/b."
        assert message(undo(served, page)).startswith("Abandoned the fork a/b. Its last version is ")
        assert 'role="alert"' in send(served, "versions/forks", action="create", name="draft")
        assert 'role="alert"' in send(served, "versions", action="create", name="x", metadata="[")

    def test_one_becomes_head_and_is_taken_back(self, served: Any) -> None:
        before = head(served)
        page = send(served, "versions/forks", action="promote", name="draft")
        assert "HEAD has moved" in message(page)
        page = send(served, "versions/forks", action="promote_anyway", name="draft")
        assert message(page) == "All files are now as in the fork draft."
        assert head(served) != before
        undo(served, page)
        assert head(served) == before


class TestForkPage(OfVersions):
    urls = (
        "versions/fork?name=draft",
        f"versions/fork?name={QUOTED}",
        f"versions/fork?name={QUOTED}&do=confirm",
    )

    @pytest.fixture
    def extension(self) -> ForkPage:
        return ForkPage()


class TestMergePage(OfVersions):
    urls = ("versions/merge", "versions/merge?from=forks/draft", f"versions/merge?from=forks/{QUOTED}")

    @pytest.fixture
    def extension(self) -> MergePage:
        return MergePage()

    def test_it_is_refused_as_if_it_were_missing(self, served: Any) -> None:
        client, mode = served
        mode.identity = NOBODY
        assert client.simulate_get("/portal/versions/merge").status_code == 200
        assert client.simulate_get("/portal/versions/merge?from=forks/draft").status_code == 403

    @pytest.mark.parametrize(("strategy", "modified"), [("theirs", 1), ("ours", 0)])
    def test_conflicts_have_three_sides_and_a_choice(self, served: Any, strategy: str, modified: int) -> None:
        client, _ = served
        before = head(served)
        page = client.simulate_get("/portal/versions/merge?from=forks/draft").text
        assert "Paths that both changed: 1." in page
        assert page.count('<section class="card conflict"') == 1
        assert [size in page for size in ("file, 4 bytes", "file, 7 bytes")] == [True, True]
        assert head(served) == before
        fields = {"from": "forks/draft", "into": "HEAD", "message": "<b>"}
        assert "resolve them" in message(send(served, "versions/merge", **fields, strategy="fail"))
        page = send(served, "versions/merge", **fields, strategy=strategy)
        assert message(page).startswith(f"Merged forks/draft into HEAD: 1 added, {modified} modified")
        assert head(served) != before
        undo(served, page)
        assert head(served) == before
        bad = client.simulate_post(
            "/portal/versions/merge", body="from=forks/draft&strategy=x", headers=OWN_FORM
        )
        assert bad.status_code == 400

    def test_a_text_is_written_by_hand_and_merged_in_one_commit(self, served: Any) -> None:
        client, _ = served
        page = client.simulate_get("/portal/versions/merge?from=forks/draft").text
        field = dict(re.findall(r'name="((?:path|ours|theirs)-0)" value="([^"]*)"', page))
        path = html.unescape(field["path-0"])
        fields = {"from": "forks/draft", "into": "HEAD", "strategy": "fail", "take-0": "text"}
        fields |= {**field, "path-0": path, "text-0": "one\r\n<b>two</b>\r\n"}
        stale = send(served, "versions/merge", **{**fields, "ours-0": "00" * 32})
        assert "has changed since you looked at it" in message(stale)
        page = send(served, "versions/merge", **fields)
        assert message(page).startswith("Merged forks/draft into HEAD: 1 added, 1 modified")
        version = self.database.at()
        entry = version.get(parse_path(path))
        assert entry is not None
        assert version.read_all(entry) == b"one\n<b>two</b>\n"
        undo(served, page)

    def test_a_merge_without_conflicts_is_shown_first(self, served: Any) -> None:
        page = served[0].simulate_get(f"/portal/versions/merge?from=forks/{QUOTED}&into=forks/draft").text
        assert "It would add 1, modify 0 and delete 0 files" in page
        fields = {"from": f"forks/{HOSTILE}", "into": "forks/draft", "strategy": "fail"}
        assert message(send(served, "versions/merge", **fields)).endswith("1 added, 0 modified, 0 deleted.")
