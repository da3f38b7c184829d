"""Drivers of families and their extensions, each a distribution that a test installs."""

from __future__ import annotations

import sys

from svc.plugins import Family
from svc_testing import DistributionFactory

__all__ = ["API", "DRIVER", "EXTENSION", "HOOK", "Strangers", "added", "only_problem", "styles_of"]

API = '''
from svc.plugin import Family, hookspec

class Style:
    pass

@hookspec
def svc_register_{name}({name}: object) -> None:
    """Adds styles. Called at boot."""

STYLES = Family({name!r}, "style", Style)
FAMILIES = (STYLES,)
'''
DESCRIPTOR = """
import msgspec
from svc.plugin import PluginDescriptor

class Settings(msgspec.Struct):
    marks: int = 1

PLUGIN = PluginDescriptor({id!r}, "1.0", "For tests", (1, 1), {implementation!r}, Settings, **{fields!r})
"""
DRIVER = """
from svc.plugin import *
from {package}.api import STYLES

seen = []

@hookimpl
def svc_start(context):
    seen.append(sorted(context.extensions(STYLES)))
"""
EXTENSION = """
from svc.plugin import *

@hookimpl
def svc_register_{family}({family}):
    from {driver}.api import Style
    class Named(Style):
        name = {name!r}
    {family}.add(Named())

@hookimpl
def svc_register_health_checks(health_checks):
    class Check(HealthCheck):
        name = {name!r}
        def check(self, context):
            return HealthReport()
    health_checks.add(Check())
"""
HOOK = "from svc.plugin import hookimpl\n@hookimpl\n"


class Strangers:
    """Installs drivers and extensions, each as a distribution of its own."""

    def __init__(self, distributions: DistributionFactory) -> None:
        self._distributions = distributions

    def driver(
        self, name: str = "greeter", family: str = "styles", api: str | None = None, plugin: str | None = None
    ) -> str:
        """Installs the plugin ``test.<name>``, which drives a family."""
        package = f"svc_test_{name}"
        return self.install(
            name,
            {"families": f"{package}.api"},
            DRIVER.format(package=package) if plugin is None else plugin,
            {f"{package}.api": API.format(name=family) if api is None else api},
        )

    def extension(
        self, name: str, plugin: str | None = None, driver: str = "greeter", family: str = "styles", **fields
    ) -> str:
        """Installs the plugin ``test.<name>``, which adds a style of that name."""
        fields = {"extends": (f"test.{driver}:{family}",), **fields}
        source = EXTENSION.format(family=family, driver=f"svc_test_{driver}", name=name)
        return self.install(name, fields, source if plugin is None else plugin, {})

    def install(self, name: str, fields: dict, plugin: str, modules: dict[str, str]) -> str:
        package, plugin_id = f"svc_test_{name}", f"test.{name}"
        descriptor = DESCRIPTOR.format(id=plugin_id, implementation=f"{package}.plugin", fields=fields)
        self._distributions.install(
            f"svc-test-{name}",
            modules={f"{package}.descriptor": descriptor, f"{package}.plugin": plugin, **modules},
            entry_points={plugin_id: f"{package}.descriptor:PLUGIN"},
        )
        return plugin_id


def styles_of(driver: str = "greeter") -> Family:
    return sys.modules[f"svc_test_{driver}.api"].STYLES


def added(plugins, family: str = "styles") -> dict[str, str]:
    return {item.name: item.plugin_id for item in plugins.registries.driven[family].registry}


def only_problem(plugins, plugin_id: str):
    (problem,) = plugins.problems
    assert problem.plugin_id == plugin_id
    assert plugin_id not in plugins.descriptors
    return problem
