"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

from pathlib import Path

import svc_users.api
from svc_testing import PluginPagesContract
from svc_users import plugin
from svc_users.configuration import UsersConfiguration
from svc_users.explaining import Access, Decision, Level, LevelGrant, Membership
from svc_users.groups import GroupChange
from svc_users.records import Grant, Group, User
from svc_users.resources.grants import GrantBody
from svc_users.resources.groups import GroupBody
from svc_users.resources.users import UserBody
from svc_users.users import UserChange


class TestPages(PluginPagesContract):
    docs = Path(__file__).parents[4] / "docs"
    plugin_id = "users"
    plugin_page = "plugins/users.md"
    http_page = "http/users.md"
    configuration = UsersConfiguration
    bodies = (
        *(UserBody, UserChange, GroupBody, GroupChange, GrantBody),
        *(Access, Decision, Level, LevelGrant, Membership),
    )
    records = (("/users/by-id/", User), ("/groups/by-name/", Group), ("/grants/<group key>/", Grant))
    api = svc_users.api
    commands = plugin.COMMANDS
