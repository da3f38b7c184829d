"""The pages of the portal show nobody a name or a content that the model does not allow.

Every path has a name that stands nowhere else. A crawler follows every link and sends every form of every
page. What it reads is searched for the names and contents that are hidden from the caller; and a page about
what is hidden reads like one about what is missing.
"""

from __future__ import annotations

import random
import re
from collections import Counter, deque
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any, NamedTuple
from urllib.parse import quote, urldefrag, urlencode, urljoin, urlsplit

import pytest
from falcon.testing import TestClient
from svc_portal.testing import OWN_FORM

from authorization_model.callers import identity_of
from authorization_model.rules import Caller, Grant, Path, may
from authorization_model.scale import scaled
from authorization_model.service import FORK, SNAPSHOT, write
from authorization_model.trees import Node, State
from svc.plugins import ROOT_IDENTITY, Plugins
from svc_testing import load_with_testing_auth, serve_in_process

LETTERS = "ghjkmnpqrtuvwxyz"
MOST_OF_A_KIND = scaled(3)
MOST_PAGES = scaled(100)
ABOUT_A_PATH = ("files", "history", "blame", "compare", "past", "access", "share", "deleted")
INDEXES = '{"glob": "**/*", "indexes": [{"name": "@path", "type": "exact"}]}'


class Found(NamedTuple):
    """A page or its form: where it leads, and what it sends; None for a link."""

    url: str
    form: str | None = None


class Links(HTMLParser):
    """What a page leads to."""

    def __init__(self, url: str, html: str) -> None:
        super().__init__()
        self.found: list[Found] = []
        self._url = url
        self._form: tuple[str, str] | None = None
        self._fields: list[tuple[str, str]] = []
        self._buttons: list[tuple[str, str]] = []
        self._choice = ""
        self._has_text = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag in ("a", "iframe", "img", "video", "audio"):
            address = attributes.get("href") or attributes.get("src")
            if address:
                self.found.append(Found(urldefrag(urljoin(self._url, address)).url))
        elif tag == "form":
            self._form = (
                attributes.get("method", "get"),
                urljoin(self._url, attributes.get("action") or self._url),
            )
            self._fields, self._buttons = [], []
        elif tag == "select":
            self._choice = attributes.get("name", "")
        elif tag == "option" and self._form is not None:
            # The first one counts, unless a later one is chosen.
            if "selected" in attributes or self._choice not in dict(self._fields):
                kept = [(name, value) for name, value in self._fields if name != self._choice]
                self._fields = [*kept, (self._choice, attributes.get("value", ""))]
                self._has_text = "value" not in attributes
        elif tag in ("input", "textarea") and self._form is not None:
            is_chosen = attributes.get("type") not in ("checkbox", "radio") or "checked" in attributes
            if attributes.get("name") and is_chosen:
                self._fields.append((attributes["name"], attributes.get("value") or ""))
        elif tag == "button" and attributes.get("name"):
            self._buttons.append((attributes["name"], attributes.get("value", "")))

    def handle_data(self, data: str) -> None:
        if self._has_text:  # An option without a value, whose text that is.
            self._fields[-1] = (self._choice, data.strip())
            self._has_text = False

    def handle_endtag(self, tag: str) -> None:
        if tag != "form" or self._form is None:
            return
        method, url = self._form
        for button in self._buttons or [None]:
            sent = urlencode([*self._fields, *([button] if button else [])])
            self.found.append(
                Found(url, sent) if method == "post" else Found(f"{url.partition('?')[0]}?{sent}")
            )
        self._form = None


class Tree:
    """States whose names and contents are unique, and what a caller may know of them."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._used: set[str] = set()
        self.past: State = {}
        self.past_root = ""
        directories: list[Path] = [()]
        for _ in range(5):
            parent = rng.choice(directories)
            directory = (*parent, self.name())
            directories.append(directory)
            self.past[directory] = Node("d")
        for _ in range(14):
            path = (*rng.choice(directories), f"{self.name()}.txt")
            self.past[path] = Node("f", f"{self.name()}\n")
        self.head, self.fork = dict(self.past), dict(self.past)
        files = [path for path, node in self.past.items() if node.kind == "f"]
        for state, gone in ((self.head, files[0:4]), (self.fork, files[2:6])):
            for path in gone:
                del state[path]
            for path in (files[6], files[7]):
                state[path] = Node("f", f"{self.name()}\n")
            state[(*rng.choice(directories), f"{self.name()}.txt")] = Node("f", f"{self.name()}\n")
        self.paths = sorted({*self.past, *self.head, *self.fork})
        self.directories = directories

    def name(self) -> str:
        """Seven letters that stand nowhere else: not in hashes, and in no word of a page."""
        while (name := "".join(self._rng.choice(LETTERS) for _ in range(7))) in self._used:
            pass
        self._used.add(name)
        return name

    def known(self, caller: Caller, *, of_events: bool) -> set[str]:
        """The names and contents that pages may show to a caller."""
        known: set[str] = set()
        for state in (self.past, self.head, self.fork):
            for path, node in state.items():
                is_directory = node.kind == "d"
                shows = any(may(caller, letter, path, is_directory) for letter in "rl")
                counts = of_events or state is self.fork or path in self.head or may(caller, "d", path)
                if shows and counts:
                    known |= set(path)
                    if not is_directory and may(caller, "r", path):
                        known.add(node.content.strip())
        return known

    def secrets(self, caller: Caller, *, of_events: bool = False) -> set[str]:
        everything = {name for path in self.paths for name in path} | {
            node.content.strip()
            for state in (self.past, self.head, self.fork)
            for node in state.values()
            if node.kind == "f"
        }
        return everything - self.known(caller, of_events=of_events)


class Crawler:
    """Reads all pages that a caller can come to."""

    def __init__(self, client: TestClient, tree: Tree, caller: Caller) -> None:
        self.client = client
        self.secrets = tree.secrets(caller)
        self.secrets_of_events = tree.secrets(caller, of_events=True)
        self.is_root = caller.is_root
        self.seen: set[Found] = set()
        self.statuses: dict[Found, int] = {}

    def crawl(self, *begin: str) -> None:
        waiting = deque(Found(urljoin("http://x/", url)) for url in begin)
        kinds: Counter[tuple[str, str]] = Counter()
        while waiting and len(self.statuses) < MOST_PAGES:
            found = waiting.popleft()
            where = urlsplit(found.url)
            is_page = where.netloc == "x" and where.path.startswith(("/portal/", "/files/", "/share/files/"))
            if not is_page or found in self.seen:
                continue
            self.seen.add(found)
            sent = (found.form or "") + where.query
            kind = "/".join(where.path.split("/")[1:3]), re.sub(r"=[^&]*", "", sent)
            kinds[kind] += 1
            is_seen_enough = kinds[kind] > MOST_OF_A_KIND and kind[0] != "share/files"
            if is_seen_enough or where.path.startswith(("/portal/static", "/portal/sign-")):
                continue
            if found.form is not None and self.is_root:
                continue  # Root may do everything: there is nothing to find, and much to destroy.
            waiting.extend(self.read(found))

    def read(self, found: Found) -> list[Found]:
        where = urlsplit(found.url)
        answer = self.ask(found)
        self.statuses[found] = answer.status_code
        text = answer.text if answer.content else ""
        self.check(found, text)
        location = answer.headers.get("location")
        if location:
            cookie = answer.headers.get("set-cookie", "").partition(";")[0]
            path = urlsplit(urljoin(found.url, location))
            said = self.client.simulate_get(
                path.path, query_string=path.query, headers={"Cookie": cookie}
            ).text
            self.check(found, said)
            return Links(urljoin(found.url, location), said).found
        return Links(found.url, text).found if where.path.startswith(("/portal/", "/share/")) else []

    def ask(self, found: Found) -> Any:
        where = urlsplit(found.url)
        if found.form is None:
            return self.client.simulate_get(where.path, query_string=where.query)
        return self.client.simulate_post(
            where.path, body=found.form, headers=OWN_FORM, query_string=where.query
        )

    def check(self, found: Found, text: str) -> None:
        is_of_events = urlsplit(found.url).path.startswith(("/portal/events", "/portal/state"))
        secrets = self.secrets_of_events if is_of_events else self.secrets
        sent = f"{found.url} {found.form}"
        told = {secret for secret in secrets if secret in text and secret not in sent}
        assert not told, (found, told)


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_with_testing_auth(
        *("users", "auth.self", "sharing", "files", "history", "versions", "backup", "query", "index.exact"),
        *("events", "events.sse", "metrics", "tasks", "task.gc", "task.verify", "portal"),
    )


@pytest.fixture(params=range(scaled(1)))
def served(request: Any, plugins: Plugins, tmp_path: Any) -> Iterator[tuple[TestClient, Any, Tree]]:
    tree = Tree(random.Random(request.param))
    with serve_in_process(tmp_path / "t.svcdb", plugins) as (app, database, mode):
        client = TestClient(app)
        write(database, {}, tree.past)
        snapshot = client.simulate_post("/versions/snapshots", json={"name": SNAPSHOT})
        assert snapshot.status_code == 201
        tree.past_root = snapshot.json["root_hash"]
        assert client.simulate_post("/versions/forks", json={"name": FORK}).status_code == 201
        write(database, tree.past, tree.head)
        write(database, tree.past, tree.fork, f"forks/{FORK}")
        yield client, mode, tree


def callers(tree: Tree) -> dict[str, Caller]:
    """Who reads the pages: each with one grant, rule or prohibition, on a directory or a file."""
    deep = max(tree.directories, key=len)
    file = next(path for path in tree.head if path[-1].endswith(".txt"))
    top = next(path for path in tree.directories if path)
    return {
        "nothing": Caller(False, (), ()),
        "a directory": Caller(False, (Grant(deep, None, "rl", ""),), ()),
        "a file": Caller(False, (Grant(file, None, "r", ""),), ()),
        "names alone": Caller(False, (Grant((), None, "l", ""),), ()),
        "all but a directory": Caller(
            False, (Grant((), None, "crudl", ""), Grant(top, None, "", "crudl")), ()
        ),
        "a share link": Caller(False, None, ((f"/{'/'.join(file)}", "-r--l---"),)),
        "a share link of a directory": Caller(False, None, ((f"/{'/'.join(top)}/**", "-r--l---"),)),
    }


def test_no_page_tells_a_name_or_content_that_is_hidden(served: tuple[TestClient, Any, Tree]) -> None:
    client, mode, tree = served
    for name, caller in callers(tree).items():
        mode.identity = identity_of(caller)
        crawler = Crawler(client, tree, caller)
        directories = sorted("/".join(path) for path in tree.directories)
        past = [f"/portal/past/{quote(path)}?version={tree.past_root}" for path in directories]
        compared = f"/portal/compare/?from={tree.past_root}&to="
        for url in past:
            crawler.read(Found(f"http://x{url}"))
        crawler.crawl("/share/files/", *(f"/share/files/{quote('/'.join(path))}" for path in tree.paths))
        crawler.crawl("/portal/", "/portal/state", f"{compared}HEAD", f"{compared}forks/{FORK}")
        errors = {found: status for found, status in crawler.statuses.items() if status >= 500}
        assert not errors, name
        assert 200 in crawler.statuses.values(), name


def test_what_is_hidden_reads_like_what_is_missing(served: tuple[TestClient, Any, Tree]) -> None:
    client, mode, tree = served
    for name, caller in callers(tree).items():
        mode.identity = identity_of(caller)
        for path in tree.paths:
            missing = (*path[:-1], tree.name() + path[-1][7:])
            is_directory = path in tree.directories
            if any(may(caller, letter, at, is_directory) for at in (path, missing) for letter in "crudl"):
                continue
            for page in (*(f"/portal/{name}" for name in ABOUT_A_PATH), "/share/files"):
                answers = [client.simulate_get(f"{page}/{quote('/'.join(at))}") for at in (path, missing)]
                texts = [
                    one.text.replace(at[-1], "NAME") for one, at in zip(answers, (path, missing), strict=True)
                ]
                assert answers[0].status_code == answers[1].status_code, (name, page, path)
                assert texts[0] == texts[1], (name, page, path)


def test_a_search_for_what_is_hidden_reads_like_one_for_what_is_missing(
    served: tuple[TestClient, Any, Tree],
) -> None:
    client, mode, tree = served
    mode.identity = ROOT_IDENTITY
    stored = client.simulate_put("/files/.svc-config/indexes.json", body=INDEXES)
    assert stored.status_code == 201, stored.text
    for name, caller in callers(tree).items():
        mode.identity = identity_of(caller)
        crawler = Crawler(client, tree, caller)
        for secret in sorted(crawler.secrets)[: scaled(2)]:
            part, other = secret[:6], tree.name()[:6]
            for url in ("/portal/search?q={}", "/portal/files/?filter={}", "/portal/search?q={}&explain=1"):
                texts = []
                for word in (part, other):
                    found = Found("http://x" + url.format(word))
                    crawler.read(found)
                    texts.append(re.sub(r"[\d.]+ ms", "MS", crawler.ask(found).text.replace(word, "WORD")))
                assert texts[0] == texts[1], (name, url, secret)


def test_root_comes_to_whole_pages_alone(served: tuple[TestClient, Any, Tree]) -> None:
    client, mode, tree = served
    mode.identity = ROOT_IDENTITY
    crawler = Crawler(client, tree, Caller(True, None, ()))
    crawler.crawl("/portal/")
    failed = {
        found.url: status
        for found, status in crawler.statuses.items()
        # A day ago there was no database.
        if status not in (200, 303, 308) and "?back=1&unit=days" not in found.url
    }
    assert not failed
    assert len(crawler.statuses) >= 40
