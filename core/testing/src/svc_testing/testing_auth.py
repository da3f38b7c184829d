"""The auth mode ``testing``: identities that a test gives. It exists only where a test installs it.

No distribution of svc has an entry point for it. ``install_testing_auth`` makes one on the spot, which
processes see while the test's directory is on their path; so a plugin is tested over HTTP with nothing but
the kernel beside it, and no production server can be started with this mode.
"""

from __future__ import annotations

import hmac
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from svc.errors import AuthRequired
from svc.plugins import (
    ROOT_IDENTITY,
    AuthContext,
    AuthMode,
    Credentials,
    Identity,
    NamedRegistry,
    PluginDescriptor,
    Plugins,
    hookimpl,
    load_plugins,
)
from svc_testing.distributions import DistributionFactory

__all__ = [
    "TESTING_AUTH",
    "TESTING_ROOT_KEY",
    "TestingAuthMode",
    "install_testing_auth",
    "load_with_testing_auth",
    "svc_register_auth_modes",
    "with_testing_auth",
]

TESTING_AUTH = "auth.testing"
"""Id of the plugin that brings the mode."""

TESTING_ROOT_KEY = "svc_k_testing_root"
"""The key that ``verify_root_key`` of the mode accepts; it refuses every other."""

_IDENTITIES = 64

PLUGIN = PluginDescriptor(
    id=TESTING_AUTH,
    version="1.0",
    summary="Identities that a test gives; in no distribution",
    api=(1, 1),
    implementation="svc_testing.testing_auth",
    auth_modes=("testing",),
)


class TestingAuthMode(AuthMode):
    """Takes requests for those of the identities that a test names.

    Args:
        identity: whose the requests without credentials are; None makes them anonymous.
        tokens: whose the requests with a token are, by token; with an empty mapping, credentials are not
            looked at. Any other token is refused.

    Attributes:
        identity: as above; a test may set it on the mode of its application at any time.
        tokens: as above.
    """

    __test__ = False  # its name looks like that of a class of tests

    name: ClassVar[str] = "testing"
    loopback_only: ClassVar[bool] = True

    def __init__(
        self, identity: Identity | None = ROOT_IDENTITY, tokens: Mapping[str, Identity] | None = None
    ) -> None:
        self.identity = identity
        self.tokens = dict(tokens or {})
        self._made: dict[int, tuple[Identity, Identity]] = {}

    def verify_root_key(self, context: AuthContext, key: str) -> bool:
        """Whether a key is ``TESTING_ROOT_KEY``."""
        return hmac.compare_digest(key.encode("utf-8", "surrogateescape"), TESTING_ROOT_KEY.encode())

    def bind(self, context: AuthContext) -> TestingAuthMode:
        """A mode of its own for each application, so that no test changes another's."""
        return TestingAuthMode(self.identity, self.tokens)

    def authenticate(self, credentials: Credentials) -> Identity | None:
        """The identity of the token, or of those who have none. Does not block.

        Raises:
            AuthRequired: there are tokens, and this is none of them.
        """
        token = credentials.query_token if credentials.value is None else credentials.value
        if token is None or not self.tokens:
            found = self.identity
        elif token in self.tokens:
            found = self.tokens[token]
        else:
            raise AuthRequired("The token is not valid.")
        return None if found is None else self._named(found)

    def _named(self, identity: Identity) -> Identity:
        """The identity with this mode's name in it; made once for each object that a test gives."""
        given, named = self._made.get(id(identity), (None, identity))
        if given is not identity:
            if len(self._made) >= _IDENTITIES:
                self._made.clear()
            named = msgspec.structs.replace(identity, auth_mode=self.name)
            self._made[id(identity)] = (identity, named)
        return named


@hookimpl
def svc_register_auth_modes(auth_modes: NamedRegistry[AuthMode]) -> None:
    """Adds ``--auth testing``, where everyone is root."""
    auth_modes.add(TestingAuthMode())


def install_testing_auth(distributions: DistributionFactory) -> None:
    """Installs a distribution that consists of the entry point of the plugin ``auth.testing``.

    Args:
        distributions: where; it says which processes see the plugin, and for how long.
    """
    distributions.install(
        "svc-auth-testing", modules={}, entry_points={TESTING_AUTH: "svc_testing.testing_auth:PLUGIN"}
    )


def load_with_testing_auth(*plugin_ids: str) -> Plugins:
    """Loads plugins into this process, with ``auth.testing`` beside them.

    Args:
        plugin_ids: the plugins.

    Returns:
        Plugins that an application can be made of with ``PipelineSettings(auth="testing")``.

    Raises:
        AssertionError: one of them has a problem.
    """
    from svc.pipeline import check_route

    with tempfile.TemporaryDirectory(prefix="svc-testing-") as directory:
        distributions = DistributionFactory(Path(directory))
        try:
            install_testing_auth(distributions)
            plugins = load_plugins(with_testing_auth(plugin_ids), check_route=check_route)
        finally:
            distributions.close()
    assert not plugins.problems, "; ".join(problem.message for problem in plugins.problems)
    return plugins


def with_testing_auth(plugin_ids: Sequence[str]) -> tuple[str, ...]:
    """The ids with that of ``auth.testing`` before them, each once."""
    return tuple(dict.fromkeys((TESTING_AUTH, *plugin_ids)))
