"""The contracts of the portal's families, as tests: in the process of the test, and without a browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html.parser import HTMLParser
from importlib.resources import files
from typing import Any, ClassVar

import pytest
from falcon.testing import Result, TestClient

from svc.plugin import Database, Identity
from svc_portal.api import (
    ENTRY_ACTIONS,
    PAGES,
    PORTAL_LINKS,
    PREVIEWS,
    SIGN_INS,
    STATE_CARDS,
    PortalLink,
    PortalPage,
    Preview,
    SignIn,
    StateCard,
)
from svc_portal.rendering import FOLDER, package_of
from svc_testing import ExtensionContract, load_with_testing_auth, serve_in_process, used_by

__all__ = [
    "OWN_FORM",
    "EntryActionContract",
    "PageReader",
    "PortalLinkContract",
    "PortalPageContract",
    "PreviewContract",
    "SignInContract",
    "StateCardContract",
    "follow",
    "send_form",
]

HOST = "falconframework.org"
OWN_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Origin": f"http://{HOST}"}
"""Header fields of a form that stands on a page of this server."""
NOBODY = Identity(user_id="11111111-1111-4111-8111-111111111111", name="nobody")
_EVENTS = "on"
_OUTWARD = "noopener noreferrer nofollow"
_EMPTY = ("input", "img", "meta", "link", "br", "hr", "source", "wbr")


def send_form(client: TestClient, page: str, form: str) -> Result:
    """Sends a form of a page."""
    return client.simulate_post(f"/portal/{page}", body=form, headers=OWN_FORM)


def follow(client: TestClient, answer: Result) -> str:
    """Returns the page that comes next, with what it says."""
    assert answer.status_code == 303, answer.text
    cookies = {name: cookie.value for name, cookie in answer.cookies.items()}
    shown = client.simulate_get(answer.headers["location"], cookies=cookies)
    assert shown.status_code == 200, shown.text
    return str(shown.text)


class PageReader(HTMLParser):
    """Reads a page, and notes what no page may have.

    Attributes:
        faults: what is wrong.
        open: the elements that were not closed.
        headings: the texts of ``h1``.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.open: list[str] = []
        self.headings: list[str] = []
        self._labelled: set[str] = set()
        self._fields: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self.open]
        for tag, attributes in self._fields:
            if attributes.get("id") not in self._labelled and "aria-label" not in attributes:
                self.faults.append(f"the {tag} {attributes.get('name')!r} has no label")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Looks at an element."""
        attributes = dict(attrs)
        self.faults += [f"{tag} has the attribute {name}" for name in attributes if name.startswith(_EVENTS)]
        if "style" in attributes or tag == "style":
            self.faults.append(f"{tag} has a style within the page")
        if tag == "script" and "src" not in attributes:
            self.faults.append("a script within the page")
        for name in ("src", "href", "action"):
            url = attributes.get(name) or ""
            # What somebody has written may name another site, by a link that tells it nothing.
            is_outward = attributes.get("rel") == _OUTWARD and url.startswith("https://")
            leads_away = "//" in url.partition("?")[0] or url.lower().startswith(("javascript:", "data:"))
            if leads_away and not (name == "href" and is_outward):
                self.faults.append(f"{tag} leads to {url!r}")
        if tag == "img" and "alt" not in attributes:
            self.faults.append("an img has no alt")
        if tag == "label":
            self._labelled.add(attributes.get("for") or "")
        if tag in ("input", "select", "textarea") and attributes.get("type") not in ("hidden", "submit"):
            self._fields.append((tag, attributes))
        if tag not in _EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Looks at its end."""
        if self.open and self.open[-1] == tag:
            self.open.pop()
        elif tag not in _EMPTY and tag != "p":
            self.faults.append(f"{tag} ends where {self.open[-1:]} is open")

    def handle_data(self, data: str) -> None:
        """Looks at a text."""
        if self.open and self.open[-1] == "h1" and data.strip():
            self.headings.append(data.strip())


class _Served(ExtensionContract):
    """An application with the portal, the plugin and those beside it.

    Attributes:
        beside: other plugins that the pages need.
    """

    beside: ClassVar[Sequence[str]] = ()

    def fill(self, database: Database) -> None:
        """Puts into the database what the pages are to show; nothing, unless overridden."""

    @pytest.fixture
    def served(self, tmp_path: Any) -> Iterator[tuple[TestClient, Any]]:
        """A client of the application, and its auth mode, whose ``identity`` is root's at first."""
        plugins = load_with_testing_auth(*used_by("portal", self.plugin_id, *self.beside))
        with serve_in_process(tmp_path / "portal.svcdb", plugins) as (app, database, mode):
            self.fill(database)
            yield TestClient(app), mode


class PortalPageContract(_Served):
    """Tests of a page. A subclass sets ``plugin_id`` and gives ``extension``.

    Attributes:
        urls: addresses of the page below ``/portal/`` that root can open, one at least.
        forms: of forms that it takes: the address, and the fields.
        is_for_everyone: whether somebody who was granted nothing gets a page too, and not a 404.
    """

    family = PAGES
    urls: ClassVar[Sequence[str]] = ()
    forms: ClassVar[Sequence[tuple[str, str]]] = ()
    is_for_everyone: ClassVar[bool] = False

    def test_its_templates_are_there(self, extension: PortalPage) -> None:
        """In the folder ``templates`` of its package."""
        assert files(package_of(extension)).joinpath(FOLDER).is_dir()

    def test_it_shows(self, served: tuple[TestClient, Any]) -> None:
        """Every address is a whole page, with one heading, labels, and nothing that its policy forbids."""
        client, _ = served
        assert self.urls, "The contract needs an address of the page."
        for url in self.urls:
            self.check(client.simulate_get(f"/portal/{url}"), url)

    def test_it_is_refused_as_if_it_were_missing(self, served: tuple[TestClient, Any]) -> None:
        """To those whom nothing was granted."""
        client, mode = served
        mode.identity = NOBODY
        for url in self.urls:
            answer = client.simulate_get(f"/portal/{url}")
            assert answer.status_code == (200 if self.is_for_everyone else 404), url

    def test_nobody_is_sent_to_sign_in(self, served: tuple[TestClient, Any]) -> None:
        """Without a word of what would be there."""
        client, mode = served
        mode.identity = None
        for url in self.urls:
            answer = client.simulate_get(f"/portal/{url}")
            assert answer.status_code == 303, url
            assert answer.headers["location"].startswith("/portal/sign-in")
            assert answer.content == b""

    def test_its_forms_do_what_they_say(self, served: tuple[TestClient, Any]) -> None:
        """Each ends on a page, and no other site can send it."""
        client, _ = served
        for url, form in self.forms:
            foreign = {**OWN_FORM, "Origin": "https://other.example"}
            refused = client.simulate_post(f"/portal/{url}", body=form, headers=foreign)
            assert refused.status_code == 403, url
            answer = send_form(client, url, form)
            assert answer.status_code in (200, 303), (url, answer.text)

    def check(self, answer: Result, url: str) -> None:
        """Looks at a page."""
        assert answer.status_code == 200, (url, answer.text)
        assert answer.headers["cache-control"] == "no-store"
        page = PageReader(answer.text)
        assert page.faults == [], url
        assert len(page.headings) >= 1, url


class PortalLinkContract(_Served):
    """Tests of a link in the header. A subclass sets ``plugin_id`` and gives ``extension``."""

    family = PORTAL_LINKS

    def test_it_leads_somewhere_on_this_server(
        self, extension: PortalLink, served: tuple[TestClient, Any]
    ) -> None:
        """And is on every page, also where nobody is signed in."""
        client, mode = served
        mode.identity = None
        assert f'href="{extension.url}"' in client.simulate_get("/portal/sign-in").text
        assert client.simulate_get(extension.url).status_code < 400


class EntryActionContract(ExtensionContract):
    """Tests of an action of files and directories. A subclass sets ``plugin_id`` and gives ``extension``."""

    family = ENTRY_ACTIONS


class PreviewContract(ExtensionContract):
    """Tests of a preview. A subclass sets ``plugin_id`` and gives ``extension``."""

    family = PREVIEWS

    def test_its_types_are_types(self, extension: Preview) -> None:
        """In lower case, without parameters; ``*`` for all subtypes."""
        for content_type in extension.content_types:
            kind, slash, name = content_type.partition("/")
            assert kind.isalpha(), content_type
            assert slash, content_type
            assert name == "*" or content_type == content_type.lower(), content_type
            assert ";" not in name, content_type

    def test_its_template_is_there(self, extension: Preview) -> None:
        """In the folder ``templates`` of its package."""
        assert files(package_of(extension)).joinpath(FOLDER, extension.template).is_file()


class StateCardContract(_Served):
    """Tests of a card on the page of the state. A subclass sets ``plugin_id`` and gives ``extension``."""

    family = STATE_CARDS

    def test_root_sees_it(self, extension: StateCard, served: tuple[TestClient, Any]) -> None:
        """As a part of a page that is whole."""
        client, _ = served
        answer = client.simulate_get("/portal/state")
        assert answer.status_code == 200
        assert f'id="card-{extension.name}"' in answer.text
        assert PageReader(answer.text).faults == []


class SignInContract(ExtensionContract):
    """Tests of a way to sign in. A subclass sets ``plugin_id`` and gives ``extension``."""

    family = SIGN_INS

    def test_its_form_has_fields(self, extension: SignIn) -> None:
        """Each with a label, and none with a name that the form of the portal has."""
        names = [field.name for field in extension.fields]
        assert len(set(names)) == len(names)
        assert not {"how", "next"} & set(names)
        assert all(field.label for field in extension.fields)
