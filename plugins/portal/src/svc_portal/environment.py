"""The environment of all templates: where they lie, and what they know. Loaded with the first page.

A template is named by its package and file; within a template a bare name is of the same package. Whatever a
template is given is escaped.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from importlib.resources import files

from jinja2 import Environment, FunctionLoader, StrictUndefined

from svc_portal.formats import bytes_text, number_text, time_text
from svc_portal.rendering import FOLDER

__all__ = ["environment"]


class _Environment(Environment):
    def join_path(self, template: str, parent: str) -> str:
        """A name without a package is of the package of the template that has it; see the base class."""
        return template if "/" in template else f"{parent.partition('/')[0]}/{template}"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Returns the environment; one for each process."""
    made = _Environment(
        loader=FunctionLoader(_load),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters |= {"bytes": bytes_text, "number": number_text, "time": time_text}
    return made


def _load(name: str) -> tuple[str, str | None, Callable[[], bool] | None] | None:
    package, _, file = name.partition("/")
    found = files(package).joinpath(FOLDER, file)
    return (found.read_text(encoding="utf-8"), str(found), None) if found.is_file() else None
