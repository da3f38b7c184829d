"""The pages of files keep the contracts of the portal."""

from __future__ import annotations

import html
import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from svc_portal.api import EntryAction, Preview
from svc_portal.testing import EntryActionContract, PortalPageContract, PreviewContract
from svc_portal.testing.contract import NOBODY, OWN_FORM

from svc.database import Database
from svc.plugin import Identity
from svc_files.portal.actions import CopyAction, DeletedAction, MoveAction, PastAction, RenameAction
from svc_files.portal.json_tree import tree_of
from svc_files.portal.pages import FilesPage
from svc_files.portal.past import PastPage
from svc_files.portal.previews import MOST_TEXT, PREVIEWS, _indented
from svc_files.portal.removed import DeletedPage
from svc_testing import PathRights

HOSTILE = "<img src=x onerror=alert(1)>\"'.txt"
URLS = (
    "files/",
    "files/a",
    "files/a/text.txt",
    "files/a/data.json",
    "files/a/broken.json",
    "files/a/deep.json",
    "files/a/program.py",
    "files/a/table.csv",
    "files/a/picture.png",
    "files/a/sound.mp3",
    "files/a/film.mp4",
    "files/a/paper.pdf",
    "files/a/bytes.bin",
    "files/a/empty.txt",
    "files/a/%3Cimg%20src=x%20onerror=alert(1)%3E%22'.txt",
    "files/a?name=text",
    "files/a?sort=size",
    "files/a/text.txt?do=rename",
    "files/a/text.txt?do=move",
)
MARKDOWN = b"""# Title

<script>alert(3)</script> [bad](javascript:alert(4)) [data](data:text/html;base64,AA)
[up](../../../../x%20y.txt)
[other](sub/other.md#part) ![far](https://other.example/p.png) ![near](p.png) ![up](//other.example/q.png)
[here](http:/portal/sign-out) [host](//other.example/) [far](https://other.example/a?b=1)

```python
print("<b>")
```

| a | b |
|---|---|
| 1 | 2 |
"""
CONTENTS = {
    "text.txt": (b"<script>alert(1)</script>", "text/plain"),
    "data.json": (b'{"a": "<b>"}', "application/json"),
    "broken.json": (b"[" * 100_000, "application/json"),
    "deep.json": (b"[" * 200 + b"]" * 200, "application/json"),
    "page.md": (MARKDOWN, "text/markdown"),
    "program.py": (b"def f():\n    return '<script>alert(2)</script>'\n", "text/x-python"),
    "table.csv": (b'name;age\n"<b>";3\nshort\n', "text/csv"),
    "picture.png": (b"\x89PNG", "image/png"),
    "sound.mp3": (b"ID3", "audio/mpeg"),
    "film.mp4": (b"\0", "video/mp4"),
    "paper.pdf": (b"%PDF", "application/pdf"),
    "bytes.bin": (b"\0", "application/octet-stream"),
    "empty.txt": (b"", "text/plain"),
    HOSTILE: (b"x", "text/plain"),
}


class TestFilesPage(PortalPageContract):
    plugin_id = "files"
    urls = URLS
    forms = (
        ("files/a", "action=mkdir&name=new"),
        ("files/a/text.txt", "action=rename&name=other.txt"),
        ("files/a", "action=copy&paths=/a/data.json&destination=/a/new"),
        ("files/a", "action=move&paths=/a/table.csv"),
        ("files/a", "action=move&paths=/a/table.csv&destination=/a/new"),
        ("files/a", "action=zip&paths=/a/new&paths=/a/data.json"),
        ("files/a", "action=delete&paths=/a/new"),
        ("files/a", "action=restore&paths=/a/new"),
        ("files/a", "action=delete"),
    )

    def fill(self, database: Database) -> None:
        with database.transaction() as changes:
            for name, (content, content_type) in CONTENTS.items():
                changes.put(("a", name), content, content_type=content_type)

    @pytest.fixture
    def extension(self) -> FilesPage:
        return FilesPage()


class TestTakingBack(PortalPageContract):
    plugin_id = "files"
    urls = ("files/a",)

    def fill(self, database: Database) -> None:
        with database.transaction() as changes:
            changes.put(("a", "old.txt"), b"before")

    @pytest.fixture
    def extension(self) -> FilesPage:
        return FilesPage()

    def put(self, client: Any, path: str, content: bytes) -> tuple[str, str]:
        """Stores a file as an upload does; returns what its undo names."""
        assert client.simulate_put(f"/files{path}", body=content).status_code in (200, 201)
        return path, client.simulate_head(f"/files{path}").headers["x-svc-content-hash"]

    def take_back(self, client: Any, **fields: Any) -> Any:
        form = {name: value if name == "version" else json.dumps(value) for name, value in fields.items()}
        body = urlencode({"action": "take_back", **form})
        return client.simulate_post("/portal/files/a", body=body, headers=OWN_FORM)

    def test_what_was_changed_since_stays(self, served: Any) -> None:
        client, _ = served
        made = [self.put(client, f"/a/new/{name}", b"mine") for name in ("deep/x", "deep/y", "gone/z")]
        self.put(client, "/a/new/deep/y", b"of another")
        self.put(client, "/a/new/other", b"of another")
        answer = self.take_back(client, list=made, folders=["/a/new"])
        assert answer.status_code == 303, answer.text
        assert "/a/new/deep/y" in client.simulate_get("/portal/files/a", cookies=cookies_of(answer)).text
        for path in ("deep/x", "gone"):
            assert client.simulate_get(f"/files/a/new/{path}").status_code == 404
        assert client.simulate_get("/files/a/new/deep/y").content == b"of another"
        assert client.simulate_get("/files/a/new/other").content == b"of another"

    def test_a_folder_goes_where_nothing_else_is_in_it(self, served: Any) -> None:
        client, _ = served
        made = [self.put(client, f"/a/new/deep/{name}", b"mine") for name in ("x", "y")]
        assert self.take_back(client, list=made, folders=["/a/new"]).status_code == 303
        assert client.simulate_get("/files/a/new").status_code == 404

    def test_what_was_replaced_comes_back(self, served: Any) -> None:
        client, _ = served
        version = client.simulate_get("/files/a").headers["x-svc-version"]
        replaced = [self.put(client, "/a/old.txt", b"after")]
        assert self.take_back(client, replaced=replaced, version=version).status_code == 303
        assert client.simulate_get("/files/a/old.txt").content == b"before"

    def test_who_may_not_bring_back_what_was_replaced_loses_nothing(self, served: Any) -> None:
        client, mode = served
        version = client.simulate_get("/files/a").headers["x-svc-version"]
        replaced = [self.put(client, "/a/old.txt", b"after")]
        made = [self.put(client, "/a/new.txt", b"mine")]
        root, mode.identity = mode.identity, Identity("u", "ann", rights=PathRights({"/": "rudl"}))
        answer = self.take_back(client, list=made, replaced=replaced, version=version)
        said = client.simulate_get("/portal/files/a", cookies=cookies_of(answer)).text
        mode.identity = root
        assert "You may not" in answer.text + said
        assert client.simulate_get("/files/a/old.txt").content == b"after"
        assert client.simulate_get("/files/a/new.txt").content == b"mine"

    def test_what_replaced_a_file_and_was_deleted_since_is_named(self, served: Any) -> None:
        client, _ = served
        version = client.simulate_get("/files/a").headers["x-svc-version"]
        replaced = [self.put(client, "/a/old.txt", b"after")]
        self.put(client, "/a/other.txt", b"other")
        client.simulate_delete("/files/a/old.txt")
        answer = self.take_back(client, replaced=replaced, version=version)
        said = client.simulate_get("/portal/files/a", cookies=cookies_of(answer)).text
        assert "what was changed since stays: /a/old.txt" in said
        assert client.simulate_get("/files/a/old.txt").status_code == 404

    def test_who_may_not_read_takes_back_only_what_is_unchanged(self, served: Any) -> None:
        client, mode = served
        same, changed = (self.put(client, f"/a/{name}", b"mine") for name in ("same", "changed"))
        self.put(client, "/a/changed", b"of another")
        root, writer = mode.identity, Identity("u", "ann", rights=PathRights({"/": "cudl"}))
        for made in ([same, changed], [same]):
            mode.identity = writer
            self.take_back(client, list=made)
            mode.identity = root
            assert client.simulate_get("/files/a/changed").content == b"of another"
            status = 200 if changed in made else 404  # All of it is refused, or none.
            assert client.simulate_get("/files/a/same").status_code == status

    def test_the_form_without_a_script_names_what_it_stored(self, served: Any) -> None:
        client, _ = served
        parts = ['name="action"\r\n\r\nupload', 'name="files"; filename="f.txt"\r\n\r\nmine']
        body = "".join(f"--B\r\nContent-Disposition: form-data; {part}\r\n" for part in parts) + "--B--\r\n"
        headers = {**OWN_FORM, "Content-Type": "multipart/form-data; boundary=B"}
        answer = client.simulate_post("/portal/files/a", body=body, headers=headers)
        said = client.simulate_get("/portal/files/a", cookies=cookies_of(answer)).text
        form = re.search(r'name="action" value="take_back">\s*<input[^>]*name="list" value="([^"]*)"', said)
        assert form is not None
        self.put(client, "/a/f.txt", b"of another")
        self.take_back(client, list=json.loads(html.unescape(form[1])))
        assert client.simulate_get("/files/a/f.txt").content == b"of another"


class TestDrawnPreviews(PortalPageContract):
    plugin_id = "files"
    urls = ("files/a/program.py",)

    def fill(self, database: Database) -> None:
        TestFilesPage.fill(self, database)  # type: ignore[arg-type]

    @pytest.fixture
    def extension(self) -> FilesPage:
        return FilesPage()

    def test_markdown_has_no_mark_of_its_own(self, served: Any) -> None:
        client, _ = served
        page = client.simulate_get("/portal/files/a/page.md").text
        drawn = page.partition('<article class="document"')[2].partition("</article>")[0]
        assert "<h2>Title</h2>" in drawn
        assert "&lt;script&gt;alert(3)&lt;/script&gt;" in drawn
        assert re.findall(r'href="([^"]*)"', drawn) == [
            "/portal/files/x%20y.txt",
            "/portal/files/a/sub/other.md",
            "https://other.example/a?b=1",
        ]
        assert drawn.count('rel="noopener noreferrer nofollow"') == 3
        assert re.findall(r'src="([^"]*)"', drawn) == ["/files/a/p.png"]
        assert "<script" not in drawn
        assert '<span class="c-nb">print</span>' in drawn
        assert "<td>1</td>" in drawn

    def test_programs_have_colours(self, served: Any) -> None:
        client, _ = served
        page = client.simulate_get("/portal/files/a/program.py").text
        assert '<span class="c-nf">f</span>' in page
        assert "&lt;script&gt;alert(2)&lt;/script&gt;" in page

    def test_json_is_a_tree_of_bounded_size(self, served: Any) -> None:
        client, _ = served
        page = client.simulate_get("/portal/files/a/data.json").text
        assert '<span class="key">a</span>: <span class="string">&#34;&lt;b&gt;&#34;</span>' in page
        deep = client.simulate_get("/portal/files/a/deep.json").text
        assert deep.count("<summary>") < 40
        assert "The tree shows a part of it." in deep

    def test_what_takes_too_long_is_shown_as_it_is(
        self, served: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("svc_files.portal.drawn.run_in_child", lambda *_: b"")
        client, _ = served
        page = client.simulate_get("/portal/files/a/page.md").text
        assert "# Title" in page
        assert "<article" not in page


def test_a_tree_shows_the_top_of_a_large_document() -> None:
    tree, is_whole = tree_of({"first": list(range(5_000)), "last": {"a": 1}})
    assert not is_whole
    assert [part.name for part in tree.parts or ()] == ["first", "last"]
    assert tree_of({"a": [1, "x", None]}) == tree_of({"a": [1, "x", None]})
    assert tree_of([1, {"b": True}])[1]


def cookies_of(answer: Any) -> dict[str, str]:
    return {name: cookie.value for name, cookie in answer.cookies.items()}


class OfThePast(PortalPageContract):
    plugin_id = "files"

    def fill(self, database: Database) -> None:
        for number in range(2):
            with database.transaction() as changes:
                for name, (content, content_type) in CONTENTS.items():
                    changes.put(("a", name), content + b"%d" % number, content_type=content_type)
        with database.transaction() as changes:
            changes.set_ref("forks/before", database.head().root)
        with database.transaction() as changes:
            changes.delete(("a", "text.txt"))
            changes.delete(("a", HOSTILE))


def test_deep_json_makes_no_large_page() -> None:
    deep = "[" * 250 + "1," * 60_000 + "1" + "]" * 250
    shown = _indented(json.loads(deep))
    assert len(shown["text"]) <= MOST_TEXT
    assert not shown["is_whole"]
    assert _indented({"a": [1]}) == {"text": '{\n  "a": [\n    1\n  ]\n}', "is_whole": True}


class TestPastPage(OfThePast):
    urls = (
        "past/",
        "past/a",
        "past/a?at=2999-01-01",
        "past/a?back=0&unit=minutes",
        "past/a/data.json?at=2999-01-01",
        "past/a/picture.png?at=2999-01-01",
        "past/a/bytes.bin?at=2999-01-01",
    )
    is_for_everyone = True  # the forms; see below for what they lead to

    @pytest.fixture
    def extension(self) -> PastPage:
        return PastPage()

    def test_it_is_refused_as_if_it_were_missing(self, served: Any) -> None:
        client, mode = served
        mode.identity = NOBODY
        for url in self.urls:
            page = client.simulate_get(f"/portal/{url}")
            if "?" not in url:
                assert page.status_code == 200
            else:
                assert page.status_code == 404
                assert "Nothing was here then that you may see" in page.text
            assert url.startswith("past/a/p") or "picture.png" not in page.text

    def test_what_was_deleted_is_there(self, served: Any) -> None:
        client, _ = served
        now = client.simulate_get("/files/a").headers["x-svc-version"]
        before = self.before(client)
        assert now != before
        page = client.simulate_get(f"/portal/past/a?version={before}").text
        rows = re.findall(r'<a class="file" href="(/portal/past/a/[^"]+)">', page)
        assert len(rows) == len(CONTENTS)
        assert HOSTILE not in page
        for row in rows:
            assert f"?version={before}" in row
            self.check(client.simulate_get(html.unescape(row)), row)
        assert "text.txt" not in client.simulate_get(f"/portal/past/a?version={now}").text
        text = client.simulate_get(f"/portal/past/a/text.txt?version={before}").text
        assert "&lt;script&gt;alert(1)&lt;/script&gt;1</pre>" in text
        for form in ('name="action"', 'method="post"'):
            assert form not in text

    def test_pictures_come_from_where_files_are_served(self, served: Any) -> None:
        client, _ = served
        before = self.before(client)
        picture = client.simulate_get(f"/portal/past/a/picture.png?version={before}&raw=1")
        assert picture.status_code == 303
        assert picture.headers["location"] == f"/files/a/picture.png?version={before}"

    def test_a_time_before_all_says_so(self, served: Any) -> None:
        client, _ = served
        for query in ("at=1990-01-01", "at=x", "back=100&unit=weeks", "version=00", "snapshot=none"):
            page = client.simulate_get(f"/portal/past/a?{query}")
            assert page.status_code == 404, query
            assert "Nothing was here then" in page.text
        for query in ("back=x&unit=days", "back=1&unit=years"):
            assert client.simulate_get(f"/portal/past/a?{query}").status_code == 400

    def test_it_is_read_by_pages(self, served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        client, _ = served
        monkeypatch.setattr("svc_files.portal.past.ROWS", 4)
        url: str | None = f"/portal/past/a?version={self.before(client)}"
        found: list[str] = []
        while url:
            page = client.simulate_get(url).text
            found += re.findall(r'<a class="file" href="([^"]+)">', page)
            following = re.search(r'<a href="([^"]+)" rel="next"', page)
            url = html.unescape(following[1]) if following else None
        assert len(found) == len(set(found)) == len(CONTENTS)

    def before(self, client: Any) -> str:
        """The version before files were deleted: a fork of it was made then."""
        return str(client.simulate_get("/files/a?fork=before").headers["x-svc-version"])


class TestDeletedPage(OfThePast):
    urls = ("deleted/", "deleted/a", "deleted/a/text.txt")
    forms = (("deleted/a", "paths=/a/text.txt"), ("deleted/a", ""))

    @pytest.fixture
    def extension(self) -> DeletedPage:
        return DeletedPage()

    def test_what_is_chosen_comes_back(self, served: Any) -> None:
        client, _ = served
        page = client.simulate_get("/portal/deleted/a").text
        assert "/a/text.txt" in page
        assert HOSTILE not in page
        answer = client.simulate_post("/portal/deleted/a", body="paths=/a/text.txt", headers=OWN_FORM)
        said = client.simulate_get("/portal/deleted/a", cookies=cookies_of(answer)).text
        assert "Restored /a/text.txt." in said
        assert client.simulate_get("/files/a/text.txt").content.endswith(b"1")
        assert 'value="/a/text.txt"' not in said
        body = urlencode({"action": "delete", "list": '["/a/text.txt"]'})
        assert html.escape('["/a/text.txt"]', quote=True).replace("&quot;", "&#34;") in said
        client.simulate_post("/portal/files/a", body=body, headers=OWN_FORM)
        assert client.simulate_get("/files/a/text.txt").status_code == 404


class TestEntryActions(EntryActionContract):
    plugin_id = "files"

    @pytest.fixture(params=[RenameAction, MoveAction, CopyAction, PastAction, DeletedAction])
    def extension(self, request: pytest.FixtureRequest) -> EntryAction:
        return request.param()


class TestPreviews(PreviewContract):
    plugin_id = "files"

    @pytest.fixture(params=PREVIEWS)
    def extension(self, request: pytest.FixtureRequest) -> Preview:
        return request.param()
