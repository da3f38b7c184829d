"""Where the commands of a user keep their sign-ins: a file that nobody else can read.

``svc login`` writes it, and every command with a server's URL uses it. A lock for each server lets one
process at a time refresh there, since a refresh token is good once. The file has a lock of its own, held only
while it is read and written.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import msgspec

from svc.confidential import Confidential
from svc.errors import AuthRequired, UsageError
from svc_client.address import ServerAddress

__all__ = ["CredentialStore", "SignIn", "StoredTokens"]

_RENEW_BEFORE_S = 30


class SignIn(Confidential, frozen=True, kw_only=True):
    """A sign-in at one server. Its representation shows no token.

    Attributes:
        token: access token.
        expires_at: when that ends, in Unix seconds.
        refresh_token: gets the next one; None where the server gave none.
        user: who signed in, for people.
    """

    shown = ("user", "expires_at")

    token: str
    expires_at: float
    refresh_token: str | None = None
    user: str | None = None


class _Document(msgspec.Struct, kw_only=True):
    version: int = 1
    servers: dict[str, SignIn] = {}


class CredentialStore:
    """The sign-ins of the user who runs this process. Safe in any number of threads and processes.

    Args:
        path: the file; None: ``svc/credentials.json`` in ``$XDG_STATE_HOME``, or else ``~/.local/state``.
        environment: what to read instead of the environment of the process.
    """

    def __init__(self, path: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        self.path = (
            _default_path(os.environ if environment is None else environment) if path is None else path
        )

    def find(self, address: ServerAddress) -> SignIn | None:
        """Returns the sign-in at a server, or None; also where the file is another user's, as after ``su``.

        Raises:
            UsageError: the file cannot be read, or others may read it.
        """
        try:
            document = self._read()
        except UsageError as error:
            if isinstance(error.__cause__, PermissionError):
                return None
            raise
        return document.servers.get(address.url)

    def put(self, address: ServerAddress, sign_in: SignIn) -> None:
        """Keeps a sign-in in the place of an earlier one; blocks."""
        with self.locked():
            self._put(address, sign_in)

    def remove(self, address: ServerAddress) -> SignIn | None:
        """Forgets the sign-in at a server and returns what it was; blocks."""
        with self.locked():
            document = self._read()
            removed = document.servers.pop(address.url, None)
            if removed is not None:
                self._write(document)
            return removed

    def renew(self, address: ServerAddress, used: SignIn, refresh: Callable[[str], SignIn]) -> SignIn | None:
        """Returns a sign-in newer than one that was used: another process's, or by a refresh; blocks.

        Returns:
            None when the user has signed out meanwhile, or there is no refresh token.

        Raises:
            AuthRequired: the server takes the refresh token no more; the sign-in was forgotten.
        """
        # A server that does not answer holds up nobody who speaks to another one.
        with self._lock(f"server-{_digest(address)}.lock"):
            present = self._read().servers.get(address.url)
            if present is None or present.refresh_token is None:
                return None
            # The whole is compared: two tokens of one second may be the same text.
            if present != used:
                return present
            try:
                renewed = msgspec.structs.replace(refresh(present.refresh_token), user=present.user)
            except AuthRequired:
                newer = self._replace(address, present, None)
                if newer is not None:
                    return newer
                raise AuthRequired(
                    f"The sign-in at {address.url} has ended; 'svc login {address.url}' begins another."
                ) from None
            return self._replace(address, present, renewed)

    def _replace(self, address: ServerAddress, before: SignIn, after: SignIn | None) -> SignIn | None:
        """Puts a sign-in, or none, in the place of one unless that was replaced; returns what is there."""
        with self.locked():
            document = self._read()
            present = document.servers.pop(address.url, None)
            if present != before:
                return present
            if after is not None:
                document.servers[address.url] = after
            self._write(document)
            return after

    def locked(self) -> contextlib.AbstractContextManager[None]:
        """Keeps other processes and threads from changing the file for as long as the context lasts."""
        return self._lock(self.path.with_suffix(".lock").name)

    @contextlib.contextmanager
    def _lock(self, name: str) -> Iterator[None]:
        self._make_directory()
        descriptor = os.open(self.path.with_name(name), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _make_directory(self) -> None:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{self.path.parent} cannot be made: {error.strerror}.") from None

    def _put(self, address: ServerAddress, sign_in: SignIn) -> None:
        document = self._read()
        document.servers[address.url] = sign_in
        self._write(document)

    def _read(self) -> _Document:
        try:
            # A FIFO or a device would be waited for.
            with open(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                mode = os.fstat(file.fileno()).st_mode
                content = file.read() if stat.S_ISREG(mode) else None
        except FileNotFoundError:
            return _Document()
        except OSError as error:
            raise UsageError(f"{self.path} cannot be read: {error.strerror}.") from error
        if content is None:
            raise UsageError(f"{self.path} is no regular file; remove it, and sign in by 'svc login URL'.")
        if mode & 0o077:
            raise UsageError(
                f"Others may read {self.path}, which holds your sign-ins: chmod 600 {self.path}."
            )
        try:
            return msgspec.json.decode(content, type=_Document)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise UsageError(
                f"{self.path} is not a file of sign-ins; remove it, and sign in again by 'svc login URL'."
            ) from None

    def _write(self, document: _Document) -> None:
        """Replaces the file as a whole: whoever reads it sees the old one or the new one."""
        try:
            # Made with mode 0600.
            descriptor, temporary = tempfile.mkstemp(prefix=".credentials-", dir=self.path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(msgspec.json.format(msgspec.json.encode(document), indent=2))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(temporary, self.path)
            except BaseException:
                with contextlib.suppress(OSError):
                    os.unlink(temporary)
                raise
        except OSError as error:
            raise UsageError(f"{self.path} cannot be written: {error.strerror}.") from None


class StoredTokens:
    """The access tokens of a stored sign-in at one server, as a transport uses them."""

    def __init__(self, store: CredentialStore, address: ServerAddress) -> None:
        self._store = store
        self._address = address
        self._present = store.find(address)

    def __bool__(self) -> bool:
        return self._present is not None

    @property
    def secrets(self) -> tuple[str, ...]:
        """What no message may show."""
        present = self._present
        return () if present is None else tuple(filter(None, (present.token, present.refresh_token)))

    def bearer(self, refresh: Callable[[str], SignIn]) -> str | None:
        """Returns the token to send; one that ends soon is renewed first, where it can be."""
        present = self._present
        if present is None:
            return None
        if present.refresh_token is not None and time.time() > present.expires_at - _RENEW_BEFORE_S:
            present = self._present = self._store.renew(self._address, present, refresh)
        return None if present is None else present.token

    def renew(self, token: str | None, refresh: Callable[[str], SignIn]) -> bool:
        """Gets another token after one was refused; returns whether there is one."""
        present = self._present
        if present is None:
            return False
        if present.token == token:
            present = self._present = self._store.renew(self._address, present, refresh)
        return present is not None


def _digest(address: ServerAddress) -> str:
    """What stands for a server in the name of a file."""
    return hashlib.sha256(address.url.encode()).hexdigest()[:16]


def _default_path(environment: Mapping[str, str]) -> Path:
    state = environment.get("XDG_STATE_HOME")
    base = Path(state) if state and os.path.isabs(state) else Path.home() / ".local" / "state"
    return base / "svc" / "credentials.json"
