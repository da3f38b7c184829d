"""Whatever svc can do is an operation: declared once, described, and called by everybody in the same way."""

from __future__ import annotations

import subprocess
import sys

import pytest

from svc.operations import DeclaredOperation, operations_of, system
from svc.pipeline import check_route
from svc.pipeline.binding import all_routes
from svc.plugins import Plugins, load_plugins


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return load_plugins(check_route=check_route)


def declared(plugins: Plugins) -> list[DeclaredOperation]:
    return [
        *operations_of(system),
        *(operation for each in plugins.descriptors.values() for operation in each.declared_operations()),
    ]


def test_every_route_is_an_operation(plugins: Plugins) -> None:
    assert not plugins.problems
    others = [
        f"{method} {route.template} of {route.plugin_id}"
        for route in all_routes(plugins)
        for method in route.responders()
    ]
    assert others == []


def test_every_operation_has_its_own_id(plugins: Plugins) -> None:
    names = [f"{operation.module}.{operation.name}" for operation in declared(plugins)]
    assert len(names) == len(set(names))


def test_every_operation_says_what_it_costs(plugins: Plugins) -> None:
    silent = [repr(operation) for operation in declared(plugins) if operation.stated_weight is None]
    silent += [
        f"{method} {route.template} of {route.plugin_id}"
        for route in all_routes(plugins)
        for method in route.responders()
        if route.stated_weight is None
    ]
    assert silent == []


def test_declarations_import_neither_database_nor_http_framework(plugins: Plugins) -> None:
    modules = sorted({operation.module for operation in declared(plugins)})
    code = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    heavy = {"falcon", "lmdb", "svc.database", "svc.pipeline", "gevent", "click", "urllib3"}
    assert heavy.isdisjoint(loaded.split())
