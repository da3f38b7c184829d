"""Each link of the built pages leads to something on the server, and none loads anything from elsewhere."""

from __future__ import annotations

from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urldefrag, urljoin, urlsplit

import pytest
from svc_docs.assets import PAGES, read_manifest

from documentation.conftest import Documented

pytestmark = pytest.mark.timeout(400)
"""Whoever comes first may have to build the pages."""

LOADED = {("script", "src"), ("img", "src"), ("link", "href"), ("iframe", "src"), ("source", "src")}
NOT_LOADED = {"index", "search", "next", "prev"}
FEWEST_PAGES = 150


class Links(HTMLParser):
    """What a page links to and loads, and the names of its places."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.linked: list[str] = []
        self.loaded: list[str] = []
        self.places: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if given.get("id"):
            self.places.add(given["id"] or "")
        for name in ("href", "src", "action"):
            target = given.get(name)
            if target is None:
                continue
            loads = (tag, name) in LOADED and given.get("rel") not in NOT_LOADED
            (self.loaded if loads else self.linked).append(target)


def test_every_link_and_place_is_there(documented: Documented) -> None:
    manifest = read_manifest()
    assert manifest is not None
    pages = {name: Links((PAGES / name).read_text()) for name in manifest.files if name.endswith(".html")}
    assert len(pages) > FEWEST_PAGES
    wanted = defaultdict(set)
    for name, page in pages.items():
        for target in (*page.linked, *page.loaded):
            url, place = urldefrag(urljoin(f"/docs/{name}", target))
            if not urlsplit(url).scheme:
                wanted[url].add((name, place))
    broken = []
    for url, places in sorted(wanted.items()):
        if documented.server.get(url).status != 200:
            broken.append((url, sorted(places)[:3]))
        name = url.removeprefix("/docs/") or "index.html"
        known = pages[name].places if name in pages else set()
        broken += [(url, place, name) for name, place in places if place and place not in known]
    assert broken == []


def test_pages_load_from_their_own_server_alone(pages: Path) -> None:
    foreign = [
        (path.name, target)
        for path in pages.rglob("*.html")
        for target in Links(path.read_text()).loaded
        if urlsplit(target).scheme or target.startswith("//")
    ]
    assert foreign == []


def test_every_page_in_the_list_is_there_as_markdown(documented: Documented) -> None:
    lines = documented.server.get("/docs/llms.txt").body.decode().splitlines()
    targets = [line.partition("](")[2].partition(")")[0] for line in lines if line.startswith("- [")]
    assert len(targets) == len(set(targets)) > FEWEST_PAGES - 10
    for target in targets:
        answer = documented.server.get(target)
        assert answer.status == 200, target
        if target.endswith(".md"):
            assert answer.headers["content-type"] == "text/plain; charset=utf-8"
            assert b"# " in answer.body


def test_every_page_about_a_plugin_that_is_not_here_says_so(documented: Documented) -> None:
    manifest = read_manifest()
    assert manifest is not None
    about = {name: built.plugin for name, built in manifest.files.items() if built.plugin is not None}
    assert {"http/metrics.html", "plugins/index-fulltext.html", "http/files.html"} <= set(about)
    for name, plugin in about.items():
        body = documented.server.get(f"/docs/{name}").body
        assert (b"Not on this server" in body) == (plugin not in documented.plugins), name
