"""The settings of the plugin: where links lead, and the limits of its routes."""

from __future__ import annotations

from typing import Annotated

import msgspec

from svc_sharing.addresses import is_base_url

__all__ = ["SharingConfiguration"]

_Count = Annotated[int, msgspec.Meta(ge=1, le=100_000)]


class SharingConfiguration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of sharing.

    Attributes:
        base_url: what the URL of a link begins with; empty: links are ``/share#...``, without a server.
        link_days: days for which a link is good that names no others.
        session_s: seconds for which a browser is signed in that opened a link.
        share_grants: most grants that one request makes: paths times users and groups.
        link_paths: most paths of a link.
        page_entries: entries on a page of the share page.
        failures: most links that do not work which one address may try within ``failures_window_s`` seconds.
    """

    base_url: str = ""
    link_days: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 30
    session_s: Annotated[int, msgspec.Meta(ge=60, le=604_800)] = 43_200
    share_grants: _Count = 1_000
    link_paths: Annotated[int, msgspec.Meta(ge=1, le=1_000)] = 100
    page_entries: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 500
    failures: _Count = 30
    failures_window_s: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 300

    def __post_init__(self) -> None:
        if self.base_url and not is_base_url(self.base_url):
            raise ValueError("base_url is an http or https URL without query and fragment")
