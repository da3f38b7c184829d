"""What descriptors add to families: named as places, imported where the family is used."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.family_material import API, Strangers, added, only_problem

from svc.errors import PluginError
from svc.plugins import PluginDescriptor, ProblemKind, load_plugins

THINGS = """
from svc.plugin import HealthCheck, HealthReport
from svc_test_greeter.api import Style

class Plain(Style):
    name = "plain"

class Loud(Style):
    name = "loud"

QUIET = Loud()
QUIET.name = "quiet"
BOTH = (Plain, QUIET)
NONE = object()
EMPTY = ()

class Check(HealthCheck):
    name = "of-a-test"
    def check(self, context):
        return HealthReport()
"""


@pytest.fixture
def add(strangers: Strangers) -> Callable[..., str]:
    """Installs ``test.adding``, which adds what it says; ``styles`` are those of ``test.greeter``."""

    def install(**adds: tuple[str, ...]) -> str:
        named = {"test.greeter:styles" if one == "styles" else one: places for one, places in adds.items()}
        fields = {"adds": {family: tuple(map(_place, places)) for family, places in named.items()}}
        return strangers.install("adding", fields, "", {"svc_test_adding.things": THINGS})

    return install


def _place(name: str) -> str:
    return name if ":" in name else f"svc_test_adding.things:{name}"


def test_classes_objects_and_tuples_of_them_are_added(strangers, add) -> None:
    plugins = load_plugins([strangers.driver(), add(styles=("BOTH", "Loud"), health_checks=("Check",))])
    assert plugins.problems == ()
    assert added(plugins) == dict.fromkeys(("plain", "quiet", "loud"), "test.adding")
    assert plugins.registries.health_checks.owner("of-a-test") == "test.adding"
    assert plugins.descriptors["test.adding"].extends == ("test.greeter:styles",)


def test_a_driver_adds_to_its_own_family_and_extends_nobody(strangers) -> None:
    adds = {"test.greeter:styles": ("svc_test_greeter.own:Own",)}
    own = 'from svc_test_greeter.api import Style\n\nclass Own(Style):\n    name = "own"\n'
    modules = {"svc_test_greeter.api": API.format(name="styles"), "svc_test_greeter.own": own}
    driver = strangers.install("greeter", {"families": "svc_test_greeter.api", "adds": adds}, "", modules)
    plugins = load_plugins([driver])
    assert added(plugins) == {"own": driver}
    assert plugins.descriptors[driver].extends == ()


def test_nothing_is_imported_where_the_family_is_not_used(strangers, add) -> None:
    adding = add(styles=("Plain",), health_checks=("Check",))
    assert load_plugins([strangers.driver(), adding], families=()).problems == ()
    assert "svc_test_adding.things" not in sys.modules


def test_what_is_for_a_driver_that_is_absent_rests(add) -> None:
    plugins = load_plugins([add(styles=("Plain",))])
    assert plugins.problems == ()
    assert "svc_test_adding.things" not in sys.modules


@pytest.mark.parametrize(
    ("adds", "kind", "words"),
    [
        ({"styles": ("Missing",)}, ProblemKind.BROKEN, "has no attribute 'Missing'"),
        ({"styles": ("svc_test_adding.nowhere:Plain",)}, ProblemKind.BROKEN, "svc_test_adding.nowhere"),
        ({"styles": ("NONE",)}, ProblemKind.BROKEN, "not a style"),
        ({"styles": ("EMPTY",)}, ProblemKind.BROKEN, "There is nothing at svc_test_adding.things:EMPTY"),
        ({"styles": ("Plain", "Plain")}, ProblemKind.DUPLICATE, "already added"),
        ({"health_check": ("Check",)}, ProblemKind.UNKNOWN_HOOK, "Did you mean health_checks?"),
        ({"routes": ("Check",)}, ProblemKind.UNKNOWN_HOOK, "no such family"),
        ({"test.greeter:stiles": ("Plain",)}, ProblemKind.UNKNOWN_HOOK, "Did you mean styles?"),
    ],
)
def test_what_cannot_be_added_puts_the_plugin_out_of_use(
    strangers, add, adds: dict[str, Any], kind: ProblemKind, words: str
) -> None:
    plugins = load_plugins([strangers.driver(), add(**{"health_checks": ("Check",), **adds})])
    problem = only_problem(plugins, "test.adding")
    assert problem.kind is kind
    assert words in problem.message
    assert added(plugins) == {}
    assert plugins.registries.health_checks.owner("of-a-test") is None


def test_a_plugin_without_hooks_that_fails_is_out_of_use_alone(install: Callable[..., str]) -> None:
    descriptor = """
from svc.plugins import PluginDescriptor

ADDS = {"health_checks": ("svc_test_bare.plugin:Gone",)}
PLUGIN = PluginDescriptor("test.bare", "1", "s", (1, 1), adds=ADDS)
"""
    problem = only_problem(load_plugins([install("bare", descriptor=descriptor)]), "test.bare")
    assert problem.kind is ProblemKind.BROKEN
    assert "'Gone'" in problem.message


@pytest.mark.parametrize(
    "adds",
    [
        [("views", ("a:B",))],
        {"views": "a:B"},
        {"views": ()},
        {"views": ("a.b",)},
        {"views": ("a:",)},
        {"Views": ("a:B",)},
        {"x:y:z": ("a:B",)},
        {1: ("a:B",)},
    ],
)
def test_a_descriptor_says_it_in_its_form(adds: Any) -> None:
    with pytest.raises(PluginError):
        PluginDescriptor("test.x", "1", "s", (1, 1), adds=adds)
