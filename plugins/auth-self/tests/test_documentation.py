"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

from pathlib import Path

import svc_auth_self.api
from svc_auth_self import models
from svc_auth_self.configuration import AuthSelfConfiguration
from svc_auth_self.keys import KeyRecord
from svc_auth_self.refresh import Chain
from svc_auth_self.signing import SigningRecord
from svc_testing import PluginPagesContract


class TestPages(PluginPagesContract):
    docs = Path(__file__).parents[3] / "docs"
    plugin_id = "auth.self"
    needs = ("users",)
    plugin_page = "plugins/auth-self.md"
    http_page = "http/auth.md"
    routes_have_rows = False
    configuration = AuthSelfConfiguration
    bodies = (
        *(models.NewKey, models.TokenRequest, models.RefreshToken, models.NewSigningKey),
        *(models.SignedIn, models.NewApiKey, models.ApiKey),
    )
    records = (("/api-keys/", KeyRecord), ("/refresh-tokens/", Chain), ("/signing-keys/", SigningRecord))
    api = svc_auth_self.api
