"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

from pathlib import Path

import svc_users.api
from svc_testing import PluginPagesContract
from svc_users import models
from svc_users.configuration import UsersConfiguration
from svc_users.records import Grant, Group, User


class TestPages(PluginPagesContract):
    docs = Path(__file__).parents[4] / "docs"
    plugin_id = "users"
    plugin_page = "plugins/users.md"
    http_page = "http/users.md"
    configuration = UsersConfiguration
    bodies = (
        *(models.NewUser, models.UserChange, models.NewGroup, models.GroupChange, models.NewGrant),
        *(models.Access, models.Decision, models.AccessLevel, models.AccessGrant, models.AccessGroup),
    )
    records = (("/users/by-id/", User), ("/groups/by-name/", Group), ("/grants/<group key>/", Grant))
    api = svc_users.api
