"""A database in self-contained mode with the plugin, whose mails a test takes out of a queue."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from email.message import EmailMessage
from pathlib import Path
from typing import Any

import msgspec
import pytest
from falcon.testing import Result, TestClient

from svc.pipeline import PipelineSettings, check_route, create_app
from svc.plugin import Database
from svc.plugins import Plugins, configure, initialize, load_plugins
from svc_auth_magic_link import delivery
from svc_auth_magic_link.delivery import Delivery
from svc_testing import load_with_testing_auth, serve_in_process
from svc_users.api import User, name_key

PLUGINS = ("auth.magic-link", "auth.self", "users")
MAILED = {"base_url": "https://svc.example/", "smtp_host": "mail.example", "smtp_from": "svc@svc.example"}
ANN = "ann@example.com"
ANN_ID = "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90"


@pytest.fixture
def svc_plugins() -> Sequence[str]:
    """The kit's fixtures have this plugin and those that it needs."""
    return PLUGINS


@pytest.fixture(scope="session")
def plugins() -> Plugins:
    return load_plugins(PLUGINS, check_route=check_route)


@dataclass
class Mails:
    """A mail server that fails as often as a test wants it to.

    Attributes:
        sent: address and message of each mail that it has taken.
        failures: what it raises for the next mails, in turn.
        attempts: address and message of each mail, taken or not.
    """

    sent: queue.Queue[tuple[str, EmailMessage]] = field(default_factory=queue.Queue)
    failures: list[Exception] = field(default_factory=list)
    attempts: list[tuple[str, EmailMessage]] = field(default_factory=list)

    def take(self, _settings: Any, address: str, message: EmailMessage) -> None:
        self.attempts.append((address, message))
        if self.failures:
            raise self.failures.pop(0)
        self.sent.put((address, message))

    def next(self) -> tuple[str, EmailMessage]:
        """The next mail that was taken."""
        return self.sent.get(timeout=30)


def _put_user(database: Database, username: str, user_id: str = ANN_ID, *, is_active: bool = True) -> None:
    """Makes or replaces a user."""
    user = User(user_id=user_id, username=username, is_active=is_active, created_at=1, updated_at=1)
    with database.transaction() as transaction:
        transaction.put_system(("users", "by-id", user_id), msgspec.json.encode(user))
        transaction.put_system(("users", "by-name", name_key(username)), user_id.encode())


@dataclass
class Served:
    """An application with the user ann.

    Attributes:
        mails: what was sent.
        configure: replaces the plugin's settings.
    """

    client: TestClient
    database: Database
    mails: Mails
    configure: Callable[[dict[str, Any]], None]

    def ask(self, email: Any, **headers: str) -> Result:
        return self.client.simulate_post("/auth/magic-link", json={"email": email}, headers=headers)

    def verify(self, code: str | None, method: str = "GET", **options: Any) -> Result:
        parameters = {} if code is None else {"code": code}
        options["params"] = {**parameters, **options.get("params", {})}
        return self.client.simulate_request(method, "/auth/magic-link/verify", **options)

    def whoami(self, token: str) -> Result:
        headers = {"Authorization": f"Bearer {token}"}
        return self.client.simulate_get("/system/whoami", headers=headers)

    def code(self) -> str:
        """The code of the next mail."""
        return code_in(self.mails.next()[1])


def code_in(message: EmailMessage) -> str:
    """The code of the link in a mail."""
    (line,) = [line for line in message.get_content().splitlines() if "code=" in line]
    return line.rpartition("code=")[2].strip()


@pytest.fixture
def served(tmp_path: Path, plugins: Plugins) -> Iterator[Served]:
    database = Database(tmp_path / "links.svcdb")
    assert initialize(database, plugins) == ()
    configure(database, plugins, "auth.magic-link", MAILED)
    _put_user(database, ANN)
    mails = Mails()

    def change(settings: dict[str, Any]) -> None:
        # The plugin begins anew with its settings, and so does its delivery.
        configure(database, plugins, "auth.magic-link", settings)
        app.service.require().commit_state()
        use_mails()

    def use_mails() -> None:
        delivery._deliveries[database] = Delivery(
            database, delays=(0.0, 0.0), retries=(0.0, 0.0, 0.0), transport=mails.take
        )

    app = create_app(database, plugins, settings=PipelineSettings(auth="self-contained"))
    use_mails()
    try:
        yield Served(TestClient(app), database, mails, change)
    finally:
        app.service.close()


@pytest.fixture
def put_user() -> Callable[..., None]:
    """Makes or replaces a user."""
    return _put_user


@pytest.fixture
def disabled_app(tmp_path: Path) -> Iterator[TestClient]:
    """An application of another mode."""
    loaded = load_with_testing_auth(*PLUGINS)
    with serve_in_process(tmp_path / "other.svcdb", loaded) as (app, _, _):
        yield TestClient(app)


@pytest.fixture
def mails() -> Mails:
    """A mail server in place of a real one."""
    return Mails()
