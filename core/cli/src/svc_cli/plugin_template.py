"""``svc plugins new``: a plugin to begin with, whole or of one kind, under names of one's own."""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from importlib.resources import as_file, files
from pathlib import Path as FilePath

import click

from svc.errors import AlreadyExists, UsageError

__all__ = ["new_command"]

_ID = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)+")
_TEMPLATE = files("svc_cli") / "template"
_KINDS = "kinds"
_NOT_COPIED = shutil.ignore_patterns("__pycache__", "*.egg-info", "build", ".*", _KINDS)
_SHARED = ("setup.cfg", "pyproject.toml", "src/svc_hello/py.typed", "tests/conftest.py")
"""Files of the whole sample that each kind has too."""
_REQUIRED = "    svc-cli >= 0.1\n    svc-core >= 0.1\n    click >= 8.5\n"
"""What the whole sample requires; a kind has no command."""

_README = """\
# {distribution}

{description}. Made by `svc plugins new {plugin_id} --kind {kind}`; change it to what you need.
Install it where svc is installed: `pip install .`
Test it: `pip install pytest hypothesis svc-testing && pytest`.
Enable it for a database: `svc plugins enable {plugin_id} -D x.svcdb`.
"""


@click.command("new")
@click.argument("plugin_id", metavar="ID")
@click.argument("directory", required=False, metavar="[DIRECTORY]")
@click.option(
    "--kind",
    type=click.Choice(sorted(item.name for item in (_TEMPLATE / _KINDS).iterdir() if item.is_dir())),
    help="What the plugin adds. Without it: an operation, a command, a view and a setting.",
)
def new_command(plugin_id: str, directory: str | None, kind: str | None) -> None:
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
    _copy(target, names, kind)
    click.echo(f"Made {target}. README.md in it says how to install it and how to test it.")


def _copy(target: FilePath, names: dict[str, str], kind: str | None) -> None:
    """Copies the template, and renames the keys of ``names``; all of it or nothing."""
    if target.exists():
        raise AlreadyExists(f"{target} exists already.")
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as place:
        made = FilePath(place) / "made"
        with as_file(_TEMPLATE) as template:
            if kind is None:
                shutil.copytree(template, made, ignore=_NOT_COPIED)
            else:
                _copy_kind(template, made, kind)
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


def _copy_kind(template: FilePath, made: FilePath, kind: str) -> None:
    """Copies what a kind adds to the files that all have."""
    shutil.copytree(template / _KINDS / kind, made, ignore=_NOT_COPIED)
    for name in _SHARED:
        (made / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(template / name, made / name)
    description = made / "kind.json"
    said = json.loads(description.read_bytes())
    description.unlink()
    setup = made / "setup.cfg"
    text = setup.read_text(encoding="utf-8")
    text = re.sub(r"(?m)^description = .*$", f"description = {said['description']}", text)
    needed = "".join(f"    {name} >= 0.1\n" for name in said["requires"])
    setup.write_text(text.replace(_REQUIRED, f"    svc-core >= 0.1\n{needed}"), encoding="utf-8")
    values = {"distribution": "svc-hello", "plugin_id": "contrib.hello", "kind": kind}
    readme = _README.format(description=said["description"], **values)
    (made / "README.md").write_text(readme, encoding="utf-8")
