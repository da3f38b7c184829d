"""``svc plugins new``: a copy of the plugin that ships with svc to be copied, under names of one's own."""

from __future__ import annotations

import re
import shutil
import tempfile
from importlib.resources import as_file, files
from pathlib import Path as FilePath

import click

from svc.errors import AlreadyExists, UsageError

__all__ = ["new_command"]

_ID = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+")
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*")


@click.command("new")
@click.argument("plugin_id", metavar="ID")
@click.argument("directory", required=False, metavar="[DIRECTORY]")
def new_command(plugin_id: str, directory: str | None) -> None:
    """Makes the sources of a plugin to begin with, tests included.

    ID is 'family.name', as acme.greeter; it gives the distribution (acme-greeter), which is also the
    directory where none is named, and the package (acme_greeter).
    """
    if _ID.fullmatch(plugin_id) is None:
        raise UsageError(
            "A plugin has an id of the form family.name, in small letters and digits: acme.greeter."
        )
    distribution = plugin_id.replace(".", "-")
    package = distribution.replace("-", "_")
    target = FilePath(directory or distribution)
    names = {"svc-hello": distribution, "svc_hello": package, "contrib.hello": plugin_id}
    _copy(target, names)
    click.echo(f"Made {target}. README.md in it says what is where, how to install it and how to test it.")


def _copy(target: FilePath, names: dict[str, str]) -> None:
    """Copies the template, and renames the keys of ``names``; all of it or nothing."""
    if target.exists():
        raise AlreadyExists(f"{target} exists already.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as place:
        made = FilePath(place) / "made"
        with as_file(files("svc.cli") / "template") as template:
            shutil.copytree(template, made, ignore=_NOT_COPIED)
        for old, new in names.items():
            for folder in made.rglob(old):
                folder.rename(folder.with_name(new))
        for file in made.rglob("*"):
            if file.is_file():
                text = file.read_text(encoding="utf-8")
                for old, new in names.items():
                    text = text.replace(old, new)
                file.write_text(text, encoding="utf-8")
        made.rename(target)
