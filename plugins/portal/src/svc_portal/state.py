"""The page on the state of the server, made of the cards that plugins add, and the portal's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from svc.operations.system import list_findings, show_health, show_information
from svc.plugin import space_of
from svc_portal.api import STATE_CARDS, Answer, PortalPage, Shown, StateCard
from svc_portal.rendering import package_of, render

if TYPE_CHECKING:
    from svc_portal.requests import PortalRequest

__all__ = ["FindingsCard", "ServerCard", "StatePage"]


class StatePage(PortalPage):
    """The page."""

    name: ClassVar[str] = "state"
    path: ClassVar[str] = "state"
    title: ClassVar[str] = "State"
    place: ClassVar[int | None] = 90

    def show(self, request: PortalRequest) -> Answer:
        """All cards that are for who asks."""
        from svc_portal.requests import in_order

        cards = []
        for extension in in_order(request.portal.extensions(STATE_CARDS).values()):
            card, own = extension.value, request.for_extension(extension)
            values = card.values(own)
            if values is not None:
                cards.append((card.name, card.title, render(own, package_of(card), card.template, values)))
        return Shown("state.html", {"cards": cards})


class FindingsCard(StateCard):
    """What is wrong; root reads more of it than others."""

    name: ClassVar[str] = "findings"
    title: ClassVar[str] = "Health"
    template: ClassVar[str] = "findings.html"
    place: ClassVar[int] = 0

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """All findings."""
        if request.identity.is_unrestricted_root:
            findings = request.call(list_findings).findings
            return {
                "findings": findings,
                "details": [f"{one.subject} {one.detail}".strip() for one in findings],
            }
        public = request.call(show_health).findings
        return {"findings": public, "details": [""] * len(public)}


class ServerCard(StateCard):
    """What the database holds and takes, and how far its views are, for root."""

    name: ClassVar[str] = "server"
    title: ClassVar[str] = "Database"
    template: ClassVar[str] = "server.html"
    place: ClassVar[int] = 10

    def values(self, request: PortalRequest) -> Mapping[str, Any] | None:
        """Nothing for others."""
        if not request.identity.is_unrestricted_root:
            return None
        facts, space = request.call(show_information), space_of(request.context.database)
        return {
            "facts": facts,
            "views": [
                (name, max(0, facts.sequence - applied)) for name, applied in sorted(facts.views.items())
            ],
            "space": space,
            "full_percent": 100 * (1 - space.disk_free / space.disk) if space.disk else None,
            "plugins_url": request.url("plugins"),
        }
