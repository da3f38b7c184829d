"""Pages from templates: what a plugin shows, in the frame that all have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markupsafe import Markup

    from svc_portal.requests import PortalRequest

__all__ = ["FOLDER", "OWN_PACKAGE", "package_of", "render"]

OWN_PACKAGE = "svc_portal"
FOLDER = "templates"


def render(request: PortalRequest, package: str, template: str, values: Mapping[str, Any]) -> Markup:
    """Returns a template with its values in it.

    Args:
        request: the request; templates know it as ``request``.
        package: the package of the template.
        template: the file in its folder ``templates``.
        values: what else it knows.
    """
    # Processes that show no page have no use for Jinja.
    from markupsafe import Markup

    from svc_portal.environment import environment

    found = environment().get_template(f"{package}/{template}")
    return Markup(found.render({**values, "request": request}))


def package_of(thing: object) -> str:
    """Returns the package beside whose modules the templates of a thing lie."""
    module = type(thing).__module__
    return module.rpartition(".")[0] or module
