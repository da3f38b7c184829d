"""What other plugins may use of this one: keys, tokens and the mode that all with API keys share.

``TokenAuthMode`` is the base of modes with accounts of their own. Routes that sign somebody in call
``sign_in``; those that make keys for others, such as links, ``create_key`` and ``revoke_key``.
"""

from __future__ import annotations

from svc_auth_self.accounts import ROOT_ACCOUNT, Account, Accounts, DatabaseAccounts
from svc_auth_self.addresses import client_address
from svc_auth_self.cluster_keys import root_token, signing_keys, take_signing_keys
from svc_auth_self.keys import (
    DAY_MS,
    KeyRecord,
    create_key,
    find_key,
    revoke_key,
)
from svc_auth_self.limiter import limiter_of
from svc_auth_self.mode import KeyMatch, TokenAuthMode
from svc_auth_self.models import DEFAULT_KEY_DAYS, LONGEST_KEY_DAYS, SignedIn
from svc_auth_self.rules import check_rules, scoped_rules
from svc_auth_self.settings import refresh_seconds
from svc_auth_self.sign_in import sign_in, token_mode
from svc_auth_self.sign_in_log import log_refused_sign_in, log_sign_in

__all__ = [
    "DAY_MS",
    "DEFAULT_KEY_DAYS",
    "LONGEST_KEY_DAYS",
    "ROOT_ACCOUNT",
    "Account",
    "Accounts",
    "DatabaseAccounts",
    "KeyMatch",
    "KeyRecord",
    "SignedIn",
    "TokenAuthMode",
    "check_rules",
    "client_address",
    "create_key",
    "find_key",
    "limiter_of",
    "log_refused_sign_in",
    "log_sign_in",
    "refresh_seconds",
    "revoke_key",
    "root_token",
    "scoped_rules",
    "sign_in",
    "signing_keys",
    "take_signing_keys",
    "token_mode",
]
