"""Signing in at the portal keeps the contract of its family."""

from __future__ import annotations

import pytest
from svc_portal.testing import SignInContract

from svc_auth_self.portal.sign_in import KeySignIn


class TestKeySignIn(SignInContract):
    plugin_id = "auth.self"

    @pytest.fixture
    def extension(self) -> KeySignIn:
        return KeySignIn()
