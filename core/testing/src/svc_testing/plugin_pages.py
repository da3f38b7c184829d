"""The contract of a plugin's pages: settings, routes, bodies, records and commands are as described."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import click
import msgspec

from svc.pipeline import check_route
from svc.plugins import load_plugins
from svc_testing.plugins import commands_of

__all__ = ["PluginPagesContract"]

_SHARED_OPTIONS = frozenset({"database", "url", "token", "tls_ca", "as_json"})
"""Options that all commands share; the page has them once."""

_UNITS = {"": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class PluginPagesContract:
    """Tests of the pages of one plugin against its code. A subclass names both.

    A page about HTTP has a row ``| `METHOD /template` | ...`` for each route, or at least its template; the
    page of the plugin a section ``## Settings`` with a row ``| `name` | default | ...`` for each setting; the
    page of commands a section ``## svc <command>`` with a row for each option.

    Both pages begin with the front matter ``plugin: <id>``.

    Attributes:
        docs: the folder of the pages.
        plugin_id: of the plugin.
        needs: plugins that must be loaded beside it.
        plugin_page: name of the plugin's page in ``docs``.
        http_page: name of the page about its routes in ``docs``; None when it has none.
        routes_have_rows: whether that page has a row for each method and template, and no other row.
        configuration: the struct of its settings; None when it has none.
        bodies: structs of what requests and answers hold.
        records: the beginning of the row of what is stored, behind the first backtick, and its struct.
        api: the module that other plugins may use; None when there is none.
    """

    docs: ClassVar[Path]
    plugin_id: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    plugin_page: ClassVar[str]
    http_page: ClassVar[str | None] = None
    routes_have_rows: ClassVar[bool] = True
    configuration: ClassVar[type[msgspec.Struct] | None] = None
    bodies: ClassVar[tuple[type[msgspec.Struct], ...]] = ()
    records: ClassVar[tuple[tuple[str, type[msgspec.Struct]], ...]] = ()
    api: ClassVar[ModuleType | None] = None

    def test_every_setting_has_its_row_and_default(self) -> None:
        """The page says what a setting is when nobody sets it."""
        if self.configuration is None:
            return
        rows = dict(re.findall(r"^\| `(\w+)` \| ([^|]*?) ?\|", self._section("Settings"), re.MULTILINE))
        settings = self.configuration()
        assert set(rows) == set(self.configuration.__struct_fields__)
        for name, shown in rows.items():
            assert _read(shown) == str(getattr(settings, name)), name

    def test_its_pages_name_the_plugin(self) -> None:
        """In their front matter: a server says on the page whether it uses that plugin."""
        for name in filter(None, (self.plugin_page, self.http_page)):
            assert self._page(name).startswith(f"---\nplugin: {self.plugin_id}\n---\n"), name

    def test_every_route_is_described(self) -> None:
        """Nothing answers that no page tells of."""
        if self.http_page is None:
            return
        page = self._page(self.http_page)
        described = set(re.findall(r"^\| `([A-Z]+ /[^`]*)` \|", page, re.MULTILINE))
        routes = set(self._routes())
        if self.routes_have_rows:
            assert described == routes
            return
        pages = "".join(other.read_text(encoding="utf-8") for other in (self.docs / "http").glob("*.md"))
        for route in routes:
            assert re.search(rf"{re.escape(route.partition(' ')[2])}[`?]", pages), route

    def test_every_member_of_a_body_is_described(self) -> None:
        """Each stands in a sample or in backticks."""
        page = "" if self.http_page is None else self._page(self.http_page)
        for form in self.bodies:
            for field in msgspec.structs.fields(form):
                name = field.encode_name
                assert f'"{name}"' in page or f"`{name}`" in page, (form, name)

    def test_every_member_of_a_record_is_described(self) -> None:
        """The row of a record names its members behind the word JSON, and no other."""
        lines = self._page(self.plugin_page).splitlines()
        for place, form in self.records:
            row = next(line for line in lines if line.startswith(f"| `{place}"))
            assert set(re.findall(r"`(\w+)`", row.partition("JSON")[2])) == {*form.__struct_fields__}, place

    def test_every_name_that_other_plugins_may_use_is_described(self) -> None:
        """The section ``For other plugins`` has all of the ``api``."""
        if self.api is not None:
            section = self._section("For other plugins")
            assert {name for name in self.api.__all__ if f"`{name}" not in section} == set()

    def test_every_command_and_option_is_described_and_no_other(self) -> None:
        """A section for each command, a row for each option."""
        known: dict[str, set[str]] = {}
        for name, commands in self._commands().items():
            section = self._command_section(name)
            for command in commands:
                assert command.name == name or f"`svc {name} {command.name}" in section, command.name
                for option in command.params:
                    if not isinstance(option, click.Option):
                        continue
                    known.setdefault(section, set()).update(option.opts, option.secondary_opts)
                    for spelling in () if option.name in _SHARED_OPTIONS else option.opts:
                        assert re.search(rf"`{re.escape(spelling)}[ `]", section), spelling
        for section, spellings in known.items():
            assert set(re.findall(r"^\| `(-[^` ]+)", section, re.MULTILINE)) <= spellings

    def _page(self, name: str) -> str:
        return (self.docs / name).read_text(encoding="utf-8")

    def _section(self, title: str) -> str:
        page = self._page(self.plugin_page)
        match = re.search(rf"^## {title}\b[^\n]*\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
        assert match is not None, f"no section {title!r} in {self.plugin_page}"
        return match[1]

    def _routes(self) -> Iterator[str]:
        plugins = load_plugins([*self.needs, self.plugin_id], check_route=check_route)
        for route in plugins.registries.routes.of_plugin(self.plugin_id):
            template = re.sub(r":(path|text)\}", "}", route.value.template)
            for method in route.value.methods:
                if method not in ("HEAD", "OPTIONS"):
                    yield f"{method} {template}"

    def _commands(self) -> dict[str, list[click.Command]]:
        return {
            name: [*command.commands.values()] if isinstance(command, click.Group) else [command]
            for name, command in commands_of(self.plugin_id).items()
        }

    def _command_section(self, name: str) -> str:
        page = self._page("cli.md")
        match = re.search(rf"^## (?:[^\n]*, )?svc {name}\b.*?(?=^## )", page, re.MULTILINE | re.DOTALL)
        assert match is not None, f"no section of svc {name} in cli.md"
        return match[0]


def _read(shown: str) -> str:
    """A default as a page writes it: digits in groups of three, binary units."""
    number, _, unit = shown.partition(" ")
    digits = number.replace(",", "")
    return str(int(digits) * _UNITS[unit]) if digits.isdigit() and unit in _UNITS else shown.strip("`")
