"""The frame of all pages: who is signed in, where one can go, and what was just done."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from msgspec import Struct

from svc_portal.api import PAGES, PORTAL_LINKS, Message, PortalLink, Shown
from svc_portal.messages import take_message
from svc_portal.rendering import render
from svc_portal.requests import PortalRequest, in_order, page_url
from svc_portal.session import has_session

__all__ = ["Frame", "Place", "navigation", "plain_error", "show"]


class Place(Struct, frozen=True):
    """A link of the navigation; ``is_here`` marks that of the page which is shown."""

    title: str
    url: str
    is_here: bool


class Frame(Struct, frozen=True):
    """What the layout shows around a page.

    Attributes:
        title: of the page.
        places: the navigation.
        links: those of the header.
        name: who is signed in; None: nobody.
        may_sign_out: whether there is a session to end.
        message: what is said on top.
    """

    title: str
    places: list[Place]
    links: list[PortalLink]
    name: str | None
    may_sign_out: bool
    message: Message | None


def show(request: PortalRequest, package: str, shown: Shown, title: str) -> str:
    """Returns a page in its frame."""
    identity = request.context.identity_or_none
    frame = Frame(
        title=title,
        places=[] if identity is None else navigation(request),
        links=[one.value for one in request.portal.extensions(PORTAL_LINKS).values()],
        name=None if identity is None else identity.name,
        may_sign_out=identity is not None and has_session(request.http),
        message=shown.message or take_message(request.http, request.answer),
    )
    return render(request, package, shown.template, {**shown.values, "portal": frame})


def navigation(request: PortalRequest) -> list[Place]:
    """Returns where who asks can go."""
    pages = request.portal.extensions(PAGES)
    here = pages.get(request.page)
    marked = None if here is None else here.value.follows or here.value.name
    found = []
    for extension in in_order(one for one in pages.values() if one.value.place is not None):
        page = extension.value
        if page.is_for(request.for_extension(extension)):
            fields: dict[str, Any] = {"path": ()} if "{path:path}" in page.path else {}
            found.append(Place(page.title, page_url(page.path, **fields), page.name == marked))
    return found


def plain_error(status: int) -> bytes:
    """Returns a page that needs nothing of a request: for what failed before there was a page."""
    phrase = HTTPStatus(status).phrase
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<title>{phrase} - svc</title><link rel="stylesheet" href="/portal/static/svc_portal/portal.css">'
        f"<main><h1>{phrase}</h1><p>Error {status}. "
        '<a href="/portal/">Go to the first page</a>.</p></main></html>\n'
    ).encode()
