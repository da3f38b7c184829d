"""Who knows the root key at the shell: one mode that refuses decides, and one without keys has no say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from svc.database import Database
from svc.errors import PluginMissing, UsageError
from svc.plugins import accepts_root_key, enable, load_plugins

MODES = {
    "open": """
        has_keys = False
    """,
    "silent": """
        pass
    """,
    "strict": """
        def verify_root_key(self, context, key):
            return {"right": True, "wrong": False}.get(key)
    """,
    "file": """
        takes_argument = True
        def verify_root_key(self, context, key):
            from pathlib import Path
            return key in Path(context.argument).read_text().split()
    """,
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with Database(tmp_path / "x.svcdb") as opened:
        yield opened


@pytest.fixture
def accepts(database: Database, install: Callable[..., str]) -> Callable[..., bool]:
    """Enables plugins of these modes, and asks for a key."""
    for name, body in MODES.items():
        install(
            name,
            f"class Mode(AuthMode):\n    name = {name!r}\n    aliases = ('{name}-too',)\n"
            "    def authenticate(self, credentials):\n        return None\n"
            f"{body.replace('        ', '    ')}\n"
            "@hookimpl\ndef svc_register_auth_modes(auth_modes):\n    auth_modes.add(Mode())\n",
        )

    def ask(names: str, key: str, auth: str | None = None, allowed: str | None = None) -> bool:
        every = [f"test.{name}" for name in MODES]
        plugins = load_plugins(every)
        assert plugins.problems == ()
        for name in names.split():
            enable(database, plugins, f"test.{name}")
        known = plugins if allowed is None else load_plugins([f"test.{name}" for name in allowed.split()])
        return accepts_root_key(database, known, key, auth)

    return ask


@pytest.mark.parametrize(
    ("enabled", "key", "accepted"),
    [
        ("", "right", False),
        ("open", "anything", True),
        ("silent", "right", False),
        ("open silent", "anything", False),
        ("strict", "right", True),
        ("strict", "wrong", False),
        ("strict", "unknown", False),
        ("open strict", "right", True),
        ("open strict", "wrong", False),
        ("open strict", "unknown", False),
        ("silent strict", "right", True),
    ],
)
def test_a_key_is_taken_when_a_mode_takes_it_and_none_refuses(
    accepts: Callable[..., bool], enabled: str, key: str, accepted: bool
) -> None:
    assert accepts(enabled, key) is accepted


def test_a_mode_that_keeps_its_keys_in_a_file_is_told_which(
    accepts: Callable[..., bool], tmp_path: Path
) -> None:
    (tmp_path / "keys").write_text("alpha beta wrong")
    with pytest.raises(UsageError, match=r"--auth file://"):
        accepts("file", "alpha")
    with pytest.raises(UsageError, match=r"--auth file://"):
        accepts("file open", "alpha", "open")
    assert accepts("file open", "alpha", f"file://{tmp_path}/keys")
    assert accepts("file", "beta", f"file-too://{tmp_path}/keys")
    assert not accepts("file", "gamma", f"file://{tmp_path}/keys")
    assert accepts("file strict", "alpha", f"file://{tmp_path}/keys")
    assert not accepts("file strict", "wrong", f"file://{tmp_path}/keys")


def test_a_mode_that_is_named_must_be_enabled(accepts: Callable[..., bool], tmp_path: Path) -> None:
    (tmp_path / "keys").write_text("alpha")
    with pytest.raises(PluginMissing, match="not enabled"):
        accepts("strict", "right", f"file://{tmp_path}/keys")
    with pytest.raises(PluginMissing, match="needs a plugin"):
        accepts("strict", "right", "nowhere://x")


def test_leaving_out_the_plugin_that_would_refuse_opens_nothing(accepts: Callable[..., bool]) -> None:
    with pytest.raises(PluginMissing, match=r"test\.strict"):
        accepts("open strict", "wrong", allowed="open")
