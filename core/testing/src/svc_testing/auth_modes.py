"""The contract of auth modes: three answers, no secret told, no surprise whatever a client sends."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from svc.errors import AuthRequired
from svc.pipeline import permits
from svc.plugins import AuthContext, AuthMode, Credentials, Identity, Operation

if TYPE_CHECKING:
    from svc.database import Database

__all__ = ["AuthModeContract"]

NASTY_VALUES = (
    "",
    " ",
    "x",
    ".",
    "..",
    "a.b.c",
    "=" * 50,
    "\x00",
    "\u00e9\udc80",
    "eyJhbGciOiJub25lIn0.e30.",
    "null",
    "../../etc/passwd",
    "%00%ff",
    "svc_k_x_y",
    "rt_" + "0" * 64,
    "A" * 100_000,
)

_OTHER_REQUESTS: tuple[dict[str, Any], ...] = (
    {"method": "PUT", "path": "/auth/keys"},
    {"path": "/share/list", "header": lambda _name: "svc_share=x; session=y"},
    {"remote_address": "192.0.2.7", "secure": True},
    {"query_token": "another"},
    {"client_certificate": "another"},
)


class AuthModeContract:
    """Tests of an auth mode. A subclass gives the fixture ``mode``, and ``accepted`` and ``refused``."""

    @pytest.fixture
    def mode(self) -> AuthMode:
        """The mode under test, bound to a database if it needs one."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'mode'.")

    @pytest.fixture
    def accepted(self) -> Sequence[Credentials]:
        """Credentials that the mode accepts."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'accepted'.")

    @pytest.fixture
    def refused(self) -> Sequence[Credentials]:
        """Credentials that the mode knows and refuses; empty for a mode that refuses nobody."""
        pytest.fail(f"{type(self).__name__} must give the fixture 'refused'.")

    def test_its_names_can_be_written_on_a_command_line(self, mode: AuthMode) -> None:
        """A name and the aliases hold nothing that a shell or ``name://argument`` would take apart."""
        for name in (mode.name, *mode.aliases):
            assert name
            assert name == name.strip()
            assert not set(name) & set(":/ \t\n'\"")

    def test_accepted_credentials_give_an_identity_of_this_mode(
        self, mode: AuthMode, accepted: Sequence[Credentials]
    ) -> None:
        """An identity says which mode made it, and has a name for logs and commits."""
        for credentials in accepted:
            identity = mode.authenticate(credentials)
            assert isinstance(identity, Identity)
            assert identity.auth_mode == mode.name
            assert identity.name

    def test_refused_credentials_raise(self, mode: AuthMode, refused: Sequence[Credentials]) -> None:
        """Wrong credentials are neither an identity nor silence."""
        for credentials in refused:
            with pytest.raises(AuthRequired) as caught:
                mode.authenticate(credentials)
            if credentials.value:
                assert credentials.value not in str(caught.value)

    def test_a_request_without_credentials_raises_nothing(self, mode: AuthMode) -> None:
        """Nobody is not an error: public routes answer anonymous callers."""
        assert isinstance(mode.authenticate(Credentials()), (Identity, type(None)))

    @pytest.mark.parametrize("scheme", ["bearer", "basic", "digest", ""])
    def test_nothing_that_a_client_sends_breaks_it(self, mode: AuthMode, scheme: str) -> None:
        """Malformed credentials are refused or not recognised; nothing else comes out."""
        for value in NASTY_VALUES:
            for credentials in (Credentials(scheme=scheme, value=value), Credentials(query_token=value)):
                try:
                    identity = mode.authenticate(credentials)
                except AuthRequired:
                    continue
                assert isinstance(identity, (Identity, type(None)))

    def test_no_key_breaks_the_check_of_the_root_key(self, mode: AuthMode, database: Database) -> None:
        """Whatever is given for the root key, there are three answers and no exception."""
        context = AuthContext(database, "", None)
        for value in NASTY_VALUES:
            assert mode.verify_root_key(context, value) in (True, False, None)

    def test_what_is_allowed_below_a_path_is_allowed_there(
        self, mode: AuthMode, accepted: Sequence[Credentials]
    ) -> None:
        """One yes for a whole directory holds for the directory and for any path below it."""
        paths = [(), ("a",), ("a", "b"), ("a", "b", "c"), ("shared",), ("users", "x", "private")]
        for credentials in accepted:
            identity = mode.authenticate(credentials)
            if identity is None:
                continue
            for operation in Operation:
                for above in paths:
                    if permits(identity, operation, above, below=True):
                        below = [path for path in paths if path[: len(above)] == above]
                        assert all(permits(identity, operation, path) for path in below)

    def test_what_is_asked_once_a_commit_depends_on_the_token_alone(
        self, mode: AuthMode, accepted: Sequence[Credentials]
    ) -> None:
        """Whatever else a request says, a token's identity is the same object until the next commit."""
        if not mode.asked_once_a_commit:
            return
        for credentials in accepted:
            if credentials.scheme != "bearer" and mode.has_keys:
                continue
            expected = mode.authenticate(credentials)
            for changes in _OTHER_REQUESTS:
                assert mode.authenticate(msgspec.structs.replace(credentials, **changes)) is expected

    def test_many_threads_get_the_same_answers(self, mode: AuthMode, accepted: Sequence[Credentials]) -> None:
        """A mode is used by many greenlets at once."""
        expected = [mode.authenticate(credentials) for credentials in accepted]
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: [mode.authenticate(item) for item in accepted], range(32)))
        assert answers == [expected] * 32

    def test_the_representation_of_credentials_holds_no_secret(self, accepted: Sequence[Credentials]) -> None:
        """What a log line may hold shows no token."""
        for credentials in accepted:
            for secret in (credentials.value, credentials.query_token):
                assert not secret or secret not in repr(credentials)
