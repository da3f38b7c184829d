"""The file that keeps sign-ins: nobody else reads it, and commands at the same time refresh once."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from svc.errors import AuthRequired, UsageError
from svc_client import CredentialStore, SignIn
from svc_client.address import ServerAddress
from svc_client.credentials import StoredTokens

HERE = ServerAddress.parse("http://127.0.0.1:6830")
THERE = ServerAddress.parse("https://example.org/svc/")


def sign_in(number: int = 0, *, ends_in: float = 3600) -> SignIn:
    return SignIn(
        token=f"token-{number}", expires_at=time.time() + ends_in, refresh_token=f"rt_{number}", user="ann"
    )


@pytest.fixture
def store(tmp_path: Path) -> CredentialStore:
    return CredentialStore(environment={"XDG_STATE_HOME": str(tmp_path)})


def test_sign_ins_are_kept_by_server_and_nobody_else_reads_them(store: CredentialStore) -> None:
    assert store.find(HERE) is None
    before = os.umask(0)
    try:
        store.put(HERE, sign_in(1))
        store.put(THERE, sign_in(2))
    finally:
        os.umask(before)
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert store.path.parent.stat().st_mode & 0o777 == 0o700
    found = store.find(THERE)
    assert found is not None
    assert found.token == "token-2"
    assert "token-2" not in repr(found)
    assert store.remove(THERE) == found
    assert store.remove(THERE) is None
    assert store.find(HERE) is not None
    assert [one.name for one in store.path.parent.iterdir() if "credentials-" in one.name] == []


def test_the_file_is_where_the_environment_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for environment in ({}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}):
        assert CredentialStore(environment=environment).path == tmp_path / ".local/state/svc/credentials.json"


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"servers": {"x": 1}}', b"\xff"])
def test_a_file_that_is_none_is_said(store: CredentialStore, content: bytes) -> None:
    store.put(HERE, sign_in())
    store.path.write_bytes(content)
    with pytest.raises(UsageError, match="not a file of sign-ins"):
        store.find(HERE)


def test_a_file_that_others_may_read_is_refused(store: CredentialStore) -> None:
    store.put(HERE, sign_in())
    store.path.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        store.find(HERE)


def test_members_of_later_programs_are_no_error(store: CredentialStore) -> None:
    store.put(HERE, sign_in())
    document = json.loads(store.path.read_text())
    document["later"] = document["servers"][HERE.url]["later"] = 1
    store.path.write_text(json.dumps(document))
    assert store.find(HERE) is not None


def test_of_many_that_find_a_token_ending_one_refreshes(store: CredentialStore) -> None:
    store.put(HERE, sign_in(ends_in=1))
    spent: list[str] = []

    def refresh(token: str) -> SignIn:
        spent.append(token)
        return SignIn(token="next", expires_at=time.time() + 3600, refresh_token="rt_next")

    sent: list[str | None] = []
    begin = threading.Barrier(8)

    def call() -> None:
        tokens = StoredTokens(store, HERE)
        begin.wait()
        sent.append(tokens.bearer(refresh))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sent == ["next"] * 8
    assert spent == ["rt_0"]
    found = store.find(HERE)
    assert found is not None
    assert (found.refresh_token, found.user) == ("rt_next", "ann")


class TestWhileAServerDoesNotAnswer:
    """A refresh that hangs holds up who refreshes at the same server, and nobody else."""

    @pytest.fixture
    def hanging(self, store: CredentialStore) -> Iterator[Callable[[SignIn | Exception], SignIn | None]]:
        """A refresh under way at HERE; what is called with its outcome gives what the renewal returns."""
        store.put(HERE, sign_in(0))
        store.put(THERE, sign_in(1))
        asked, answered = threading.Event(), threading.Event()
        outcome: list[SignIn | Exception] = []

        def refresh(_token: str) -> SignIn:
            asked.set()
            answered.wait(30)
            if isinstance(outcome[0], Exception):
                raise outcome[0]
            return outcome[0]

        with ThreadPoolExecutor(1) as pool:
            used = store.find(HERE)
            assert used is not None
            renewal = pool.submit(store.renew, HERE, used, refresh)
            assert asked.wait(30)

            def answer(found: SignIn | Exception) -> SignIn | None:
                outcome.append(found)
                answered.set()
                return renewal.result(30)

            yield answer
            outcome.append(sign_in(9))
            answered.set()

    @pytest.fixture(autouse=True)
    def _limit(self) -> Iterator[None]:
        """Ends a test that waits for a lock."""

        def stop(*_: object) -> None:
            pytest.fail("somebody waits for a server that is not theirs")

        before = signal.signal(signal.SIGALRM, stop)
        signal.alarm(10)
        yield
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)

    def test_other_servers_are_signed_in_at_renewed_and_forgotten(
        self, store: CredentialStore, hanging: Callable[[SignIn | Exception], SignIn | None]
    ) -> None:
        used = store.find(THERE)
        assert used is not None
        renewed = store.renew(THERE, used, lambda _: sign_in(2))
        assert renewed is not None and renewed.token == "token-2"
        store.put(ServerAddress.parse("http://127.0.0.1:1"), sign_in(3))
        assert store.remove(THERE) == renewed
        found = hanging(sign_in(4))
        assert found is not None and found.token == "token-4"
        assert store.find(HERE) == found

    def test_who_signs_in_anew_keeps_that(
        self, store: CredentialStore, hanging: Callable[[SignIn | Exception], SignIn | None]
    ) -> None:
        store.put(HERE, newer := sign_in(2))
        assert hanging(sign_in(4)) == newer
        assert store.find(HERE) == newer

    def test_who_signs_out_stays_so(
        self, store: CredentialStore, hanging: Callable[[SignIn | Exception], SignIn | None]
    ) -> None:
        store.remove(HERE)
        assert hanging(sign_in(4)) is None
        assert store.find(HERE) is None

    def test_a_refusal_ends_no_newer_sign_in(
        self, store: CredentialStore, hanging: Callable[[SignIn | Exception], SignIn | None]
    ) -> None:
        store.put(HERE, newer := sign_in(2))
        assert hanging(AuthRequired("no more")) == newer
        assert store.find(HERE) == newer


@pytest.mark.parametrize("kind", ["fifo", "device", "directory"])
def test_what_is_no_regular_file_is_not_read(store: CredentialStore, kind: str) -> None:
    store.path.parent.mkdir()
    if kind == "fifo":
        os.mkfifo(store.path, 0o600)
    elif kind == "device":
        store.path.symlink_to("/dev/zero")
    else:
        store.path.mkdir()
    with pytest.raises(UsageError, match=r"credentials\.json"):
        store.find(HERE)


def test_a_token_that_is_renewed_within_its_second_is_renewed_once(store: CredentialStore) -> None:
    """A signed token says seconds, so the one that follows may be the same text."""
    store.put(HERE, sign_in(0, ends_in=-60))
    earlier, later = StoredTokens(store, HERE), StoredTokens(store, HERE)
    following = SignIn(token="token-0", expires_at=time.time() + 3600, refresh_token="rt_1")
    assert earlier.bearer(lambda _: following) == "token-0"
    assert later.bearer(lambda _: pytest.fail("nothing is to be refreshed")) == "token-0"
    assert later.secrets == ("token-0", "rt_1")


def test_a_refused_token_is_renewed_unless_another_process_did(store: CredentialStore) -> None:
    store.put(HERE, sign_in(0))
    tokens = StoredTokens(store, HERE)
    store.put(HERE, sign_in(1))
    assert tokens.renew("token-0", lambda _: pytest.fail("nothing is to be refreshed"))
    assert tokens.bearer(lambda _: pytest.fail("nothing is to be refreshed")) == "token-1"
    assert tokens.renew("token-1", lambda token: sign_in(2) if token == "rt_1" else sign_in(9))
    assert tokens.secrets == ("token-2", "rt_2")


def test_a_sign_in_that_the_server_has_ended_is_forgotten(store: CredentialStore) -> None:
    store.put(HERE, sign_in(ends_in=1))

    def refuse(_token: str) -> SignIn:
        raise AuthRequired("no more")

    with pytest.raises(AuthRequired, match="svc login"):
        StoredTokens(store, HERE).bearer(refuse)
    assert store.find(HERE) is None


def test_who_signed_out_meanwhile_sends_nothing(store: CredentialStore) -> None:
    store.put(HERE, sign_in(ends_in=1))
    tokens = StoredTokens(store, HERE)
    store.remove(HERE)
    assert tokens.bearer(lambda _: pytest.fail("nothing is to be refreshed")) is None
    assert not tokens.renew("token-0", lambda _: pytest.fail("nothing is to be refreshed"))
