"""docs/plugins/auth-file.md and docs/cli.md against the format and the commands."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from svc_auth_file.commands import auth_file
from svc_auth_file.format import _KeyTable, _UserTable, parse_users
from svc_auth_file.source import LARGEST_FILE

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "plugins" / "auth-file.md").read_text(encoding="utf-8")
NOVEMBER_2026_MS = 1_795_305_600_000


def keys_of(table: str) -> set[str]:
    section = PAGE.partition(f"| Key of `{table}`")[2].partition("\n\n")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE))


def test_every_key_of_the_file_is_described() -> None:
    known = {field.name for field in msgspec.structs.fields(_UserTable)}
    assert keys_of("[[users]]") == known - {"keys"}
    assert keys_of("[[users.keys]]") == {field.name for field in msgspec.structs.fields(_KeyTable)}


def test_the_example_is_in_order() -> None:
    (example,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert len(parse_users(example.encode(), NOVEMBER_2026_MS).users) == 2


def test_the_limit_is_the_one_that_counts() -> None:
    assert f"at most {LARGEST_FILE // 1024**2} MiB" in PAGE


def test_every_command_and_option_is_described() -> None:
    text = (DOCS / "cli.md").read_text(encoding="utf-8")
    section = text.partition("\n## svc auth-file\n")[2].partition("\n## ")[0]
    for name, command in auth_file.commands.items():
        (row,) = re.findall(rf"^\| `svc auth-file {name}[^\n]*", section, re.MULTILINE)
        options = {option for parameter in command.params for option in parameter.opts if option[:2] == "--"}
        assert options == set(re.findall(r"`(--[a-z-]+)", row)), name
