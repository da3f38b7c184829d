"""Makes the pages of ``docs/reference``: what authors of plugins import, and what has changed.

The first are made of docstrings; nothing is imported, griffe reads the sources. The fragments of
``docs/changes`` become one page. A page is written only where it differs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from griffe import Class, Docstring, Object

DOCS = Path(__file__).parent
ROOT = DOCS.parent
TARGET = DOCS / "reference"
CORE = tuple(ROOT / "core" / name / "src" for name in ("kernel", "cli", "testing"))
FEW = 8
"""Packages that publish fewer names share a page."""

_OF_DATA = {"Struct", "NamedTuple", "Confidential"}
_LISTS = {
    "parameters": "Arguments",
    "other parameters": "Arguments",
    "attributes": "Attributes",
    "raises": "Raises",
    "returns": "Returns",
    "yields": "Yields",
}


def setup(app: Any) -> dict[str, bool]:
    """Makes the pages before Sphinx looks for its sources."""
    app.connect("builder-inited", lambda _app: write_pages())
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def sources() -> list[Path]:
    """The files that the pages are made from, and some more: finding out which would take griffe."""
    places = [*CORE, *(module.parent for module in _driver_modules())]
    return sorted(path for place in places for path in place.rglob("*.py*") if path.suffix in (".py", ".pyi"))


def write_pages() -> None:
    """Writes all pages, and removes those of modules that are gone."""
    pages = dict(_pages())
    TARGET.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = TARGET / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for path in TARGET.glob("*.md"):
        if path.stem not in pages:
            path.unlink()


def _driver_modules() -> list[Path]:
    return sorted((ROOT / "plugins").glob("*/src/*/api.py"))


def _pages() -> Iterator[tuple[str, str]]:
    """Yields the names and texts of all pages."""
    import griffe

    drivers = _driver_modules()
    places = [*CORE, *(module.parents[1] for module in drivers)]
    loader = griffe.GriffeLoader(search_paths=places, allow_inspection=False)
    packages = ["svc", "svc_cli", "svc_testing", *(module.parent.name for module in drivers)]
    loaded = {name: loader.load(name) for name in packages}
    loader.resolve_aliases(external=False)
    yield "changes", _changes()
    yield from _plugin_pages(loaded["svc"])
    yield "svc.errors", _page("svc.errors", [(None, loaded["svc"]["errors"], None)])
    yield "svc_cli", _page("svc_cli", [(None, loaded["svc_cli"], None)])
    yield "svc_testing", _page("svc_testing", [(None, loaded["svc_testing"], None)])
    for module in drivers:
        name = f"{module.parent.name}.api"
        yield name, _page(name, [(None, loaded[module.parent.name]["api"], None)])


def _changes() -> str:
    """All changes on one page, the newest first: a page for each would make every menu longer."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((DOCS / "changes").glob("[0-9]*.md"))]
    shifted = (re.sub(r"^#", "##", text, flags=re.MULTILINE) for text in reversed(texts))
    return "\n".join(["# Changes\n", "What is new, the newest first.\n", *shifted])


def _plugin_pages(svc: Any) -> Iterator[tuple[str, str]]:
    """Yields the pages of ``svc.plugin``: one for each package that has many names, one for the others."""
    few = []
    homes: dict[str, list[str]] = {}
    public = (CORE[0] / "svc" / "plugin.pyi").read_text(encoding="utf-8")
    for home, name in re.findall(r"^from (\S+) import (\w+) as ", public, re.MULTILINE):
        homes.setdefault(home, []).append(name)
    for home, names in sorted(homes.items()):
        module = svc[home.removeprefix("svc.")]
        if len(names) < FEW:
            few.append((home, module, names))
        else:
            title = f"svc.plugin: {home.removeprefix('svc.')}"
            yield title.replace(": ", "-"), _page(title, [(None, module, names)])
    yield "svc.plugin-more", _page("svc.plugin: more", few)


def _page(title: str, parts: Iterable[tuple[str | None, Any, Iterable[str] | None]]) -> str:
    lines = [f"# {title}", ""]
    for heading, module, names in parts:
        if heading:
            lines += [f"## From {heading}", ""]
        if names is None:
            lines += [_text(module.docstring), ""]
        for name in sorted(names or module.exports or (), key=lambda name: (name.lower(), name)):
            if name in module.members or name in module.all_members:
                lines += _described(name, _target(module[name]), "###" if heading else "##")
            else:
                raise ValueError(f"{module.path} has no {name}.")
    return "\n".join(lines).rstrip() + "\n"


def _target(item: Any) -> Any:
    if item is None:
        return None
    target = item.final_target if item.is_alias else item
    # A module that has the name of the function in it hides the function.
    hides = target.is_module and target.name in target.members
    return _target(target[target.name]) if hides else target


def _described(name: str, item: Object, mark: str) -> list[str]:
    if item.is_module:
        lines = [f"{mark} {name}", "", f"The module `{item.path}`. {_text(item.docstring)}", ""]
        for inner in item.exports or ():
            lines += _described(str(inner), _target(item[str(inner)]), f"{mark}#")
        return lines
    lines = [f"{mark} {name}", "", "```python", *_signature(name, item), "```", ""]
    lines += _explained(item.docstring)
    if item.is_class:
        for member_name, member in sorted(item.all_members.items(), key=lambda pair: pair[0]):
            target = _target(member)
            if not member_name.startswith("_") and target.docstring and not _is_field(item, target):
                lines += _member(member_name, target)
    return lines


def _is_field(owner: Class, item: Object) -> bool:
    """Whether the signature of the class shows it."""
    return item.is_attribute and _is_data(owner) and "property" not in item.labels


def _is_data(item: Class) -> bool:
    bases = {str(base).partition("[")[0].rpartition(".")[2] for base in item.bases}
    return "dataclass" in item.labels or bool(bases & _OF_DATA)


def _signature(name: str, item: Object) -> list[str]:
    if item.is_function:
        marks = [f"@{mark.value}" for mark in item.decorators if str(mark.value) == "contextmanager"]
        return [*marks, f"def {item.signature(return_type=True, name=name)}"]
    if item.is_class:
        bases = ", ".join(str(base) for base in item.bases)
        head = f"class {name}({bases})" if bases else f"class {name}"
        if _is_data(item):
            fields = [f"    {_value(value.name, value)}" for value in item.members.values() if _shown(value)]
            return [f"{head}:", *fields] if fields else [head]
        called = _target(item.all_members.get("__init__"))
        is_function = called is not None and called.is_function
        return [head, _without_self(called.signature(name=name))] if is_function else [head]
    return [_value(name, item)]


def _without_self(signature: str) -> str:
    return re.sub(r"\((self|cls)(, |\))", lambda match: "(" if match[2] == ", " else "()", signature, count=1)


def _shown(item: Any) -> bool:
    return (
        item.is_attribute
        and not item.name.startswith("_")
        and item.annotation is not None
        and not str(item.annotation).startswith("ClassVar")
        and "property" not in item.labels
    )


def _value(name: str, item: Any) -> str:
    kind = f": {item.annotation}" if item.annotation is not None else ""
    text = "" if item.value is None else str(item.value)
    return f"{name}{kind}" + (f" = {text}" if text and "\n" not in text and len(text) < 80 else "")


def _member(name: str, item: Object) -> list[str]:
    is_call = item.is_function
    shown = _without_self(item.signature(return_type=True, name=name)) if is_call else _value(name, item)
    first, *others = _explained(item.docstring) or [""]
    return [f"`{shown}`", f": {first}", *(f"  {line}".rstrip() for line in others)]


def _text(docstring: Docstring | None) -> str:
    return "" if docstring is None else docstring.value


def _explained(docstring: Docstring | None) -> list[str]:
    """Returns a docstring as Markdown: its text, and a list of each of its sections."""
    if docstring is None:
        return []
    lines: list[str] = []
    for section in docstring.parse("google", warnings=False):
        if section.kind.value in _LISTS:
            lines += [f"*{_LISTS[section.kind.value]}:*", ""]
            lines += [f"- {_named(entry)}{_joined(entry.description)}" for entry in section.value]
            lines.append("")
        elif section.kind.value == "examples":
            lines += [text for _, text in section.value] + [""]
        elif section.kind.value == "admonition":
            lines += [f"*{section.title}:* {_joined(section.value.description)}", ""]
        else:
            lines += [*str(section.value).splitlines(), ""]
    return lines


def _named(entry: Any) -> str:
    name = getattr(entry, "name", "") or (entry.annotation if not hasattr(entry, "name") else "")
    return f"`{name}`: " if name else ""


def _joined(text: str) -> str:
    return " ".join(text.split())
