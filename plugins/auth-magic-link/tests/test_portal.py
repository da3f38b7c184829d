"""The ways to sign in keep the contract of the portal."""

from __future__ import annotations

import pytest
from svc_portal.testing import SignInContract

from svc_auth_magic_link.portal.sign_in import AskForLink, UseLink


class TestAskForLink(SignInContract):
    plugin_id = "auth.magic-link"

    @pytest.fixture
    def extension(self) -> AskForLink:
        return AskForLink()


class TestUseLink(SignInContract):
    plugin_id = "auth.magic-link"

    @pytest.fixture
    def extension(self) -> UseLink:
        return UseLink()
