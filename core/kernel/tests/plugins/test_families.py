"""Families of extensions: what a boot makes of a driver and of the extensions of other distributions."""

from __future__ import annotations

import sys

import pytest

from family_material import API, EXTENSION, HOOK, added, only_problem
from svc.errors import PluginError
from svc.plugins import (
    Family,
    PluginDescriptor,
    ProblemKind,
    describe_plugins,
    load_plugins,
    plugin_findings,
)


def test_extensions_of_two_distributions_are_registered_with_their_driver(strangers):
    # An extension whose id comes first does not come before the specification of its hook.
    ids = [strangers.extension("calm"), strangers.driver(), strangers.extension("loud")]
    plugins = load_plugins(ids)
    assert plugins.problems == ()
    assert added(plugins) == {"calm": "test.calm", "loud": "test.loud"}
    assert plugins.registries.driven["styles"].driver == "test.greeter"
    assert plugins.registries.named()["styles"] is plugins.registries.driven["styles"].registry


def test_the_registry_of_a_family_is_frozen_after_the_boot(strangers):
    plugins = load_plugins([strangers.driver(), strangers.extension("loud")])
    registry = plugins.registries.driven["styles"].registry
    with pytest.raises(PluginError, match="frozen"):
        registry.add(registry.get("loud"))
    with pytest.raises(PluginError, match="boot"):
        plugins.registries.add_families("test.late", (Family("late", "late thing", object),))
    with pytest.raises(TypeError):
        plugins.registries.driven["late"] = None


def test_a_driver_may_extend_its_own_family(strangers):
    plugin = """
from svc.plugin import *
from svc_test_greeter.api import Style

class Plain(Style):
    name = "plain"

@hookimpl
def svc_register_styles(styles):
    styles.add(Plain())
"""
    driver = strangers.driver(plugin=plugin)
    plugins = load_plugins([driver, strangers.extension("loud")])
    assert plugins.problems == ()
    assert added(plugins) == {"loud": "test.loud", "plain": "test.greeter"}
    assert load_plugins([driver], families=("commands",)).problems == ()


@pytest.mark.parametrize(
    ("source", "kind", "words"),
    [
        ("raise RuntimeError('no luck')", ProblemKind.BROKEN, "no luck"),
        (
            HOOK + "def svc_register_styles(styles): styles.add(42)",
            ProblemKind.BROKEN,
            "not an instance of Style",
        ),
        (
            HOOK + "def svc_register_styles(styles): raise KeyError('x')",
            ProblemKind.BROKEN,
            "svc_register_styles",
        ),
        (
            HOOK + "def svc_register_styles(wrong): pass",
            ProblemKind.BROKEN,
            "wrong",
        ),
        (
            HOOK + "def svc_register_styels(styels): pass",
            ProblemKind.UNKNOWN_HOOK,
            "svc_register_styles",
        ),
        ("def svc_register_styles(styles): pass", ProblemKind.BROKEN, "@hookimpl"),
    ],
)
def test_a_broken_extension_is_named_and_the_others_go_on(strangers, source, kind, words):
    ids = [strangers.driver(), strangers.extension("broken", source), strangers.extension("loud")]
    plugins = load_plugins(ids)
    problem = only_problem(plugins, "test.broken")
    assert problem.kind is kind
    assert words in problem.message
    assert added(plugins) == {"loud": "test.loud"}


def test_everything_of_an_extension_that_fails_halfway_is_withdrawn(strangers):
    late = EXTENSION.format(family="styles", driver="svc_test_greeter", name="half")
    late = late.replace("health_checks.add(Check())", "raise RuntimeError('late')")
    plugins = load_plugins([strangers.driver(), strangers.extension("half", late)])
    assert "late" in only_problem(plugins, "test.half").message
    assert added(plugins) == {}


def test_of_two_extensions_with_one_name_always_the_same_one_stays(strangers):
    driver, first = strangers.driver(), strangers.extension("a", EXTENSION.format(
        family="styles", driver="svc_test_greeter", name="same"))  # fmt: skip
    second = strangers.extension("b", EXTENSION.format(
        family="styles", driver="svc_test_greeter", name="same"))  # fmt: skip
    for order in ([driver, first, second], [second, first, driver]):
        plugins = load_plugins(order)
        assert only_problem(plugins, second).kind is ProblemKind.DUPLICATE
        assert added(plugins) == {"same": first}


# A driver that is not there -------------------------------------------------------------------------------


def test_an_extension_rests_where_its_driver_is_not_installed(strangers):
    loud = strangers.extension("loud")
    plugins = load_plugins([loud])
    assert plugins.problems == ()
    assert plugins.registries.health_checks.owner("loud") == loud
    assert "styles" not in plugins.registries.named()
    (report,) = [item for item in describe_plugins(plugins) if item.id == loud]
    assert (report.rests, report.adds) == (["test.greeter:styles"], {"health_checks": ["loud"]})


def test_an_extension_rests_where_its_driver_is_not_allowed_and_the_driver_is_not_imported(strangers):
    strangers.driver()
    plugins = load_plugins([strangers.extension("loud")])
    assert plugins.problems == ()
    assert not any(name.startswith("svc_test_greeter") for name in sys.modules)


def test_a_misspelt_hook_is_found_although_the_driver_is_absent(strangers):
    source = HOOK + "def svc_register_styels(styels): pass"
    problem = only_problem(load_plugins([strangers.extension("loud", source)]), "test.loud")
    assert problem.kind is ProblemKind.UNKNOWN_HOOK
    assert "svc_register_styles" in problem.message


def test_a_hook_of_a_driver_that_the_descriptor_does_not_name_is_refused(strangers):
    plugins = load_plugins([strangers.driver(), strangers.extension("loud", extends=())])
    problem = only_problem(plugins, "test.loud")
    assert problem.kind is ProblemKind.UNKNOWN_HOOK
    assert "extends=('test.greeter:styles',)" in problem.message


def test_a_family_that_the_driver_does_not_have_is_named_with_the_right_spelling(strangers):
    loud = strangers.extension("loud", "", extends=("test.greeter:stiles",))
    problem = only_problem(load_plugins([strangers.driver(), loud]), loud)
    assert problem.kind is ProblemKind.UNKNOWN_HOOK
    assert "Did you mean styles?" in problem.message
    assert load_plugins([loud]).problems == ()


BROKEN_APIS = {
    "it raises": ("raise OSError('no api')", "no api"),
    "it exits": ("import sys; sys.exit(3)", "SystemExit"),
    "it has no families": ("", "FAMILIES"),
    "its families are empty": ("FAMILIES = ()", "FAMILIES"),
    "its families are no families": ("FAMILIES = ('styles',)", "FAMILIES"),
    "it names a family twice": (API.format(name="styles") + "FAMILIES *= 2", "twice"),
    "it has no specification": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', 'style', object),)",
        "no function svc_register_styles",
    ),
    "it specifies what is no family": (
        API.format(name="styles") + "\n@hookspec\ndef svc_dance(context): pass",
        "svc_dance",
    ),
    "its specification takes something else": (
        API.format(name="styles").replace("(styles: object)", "(things: object)"),
        "one argument, 'styles'",
    ),
    "its specification gives one result": (
        API.format(name="styles").replace("@hookspec", "@hookspec(firstresult=True)"),
        "@hookspec alone",
    ),
    "the name of its family is none": (
        "from svc.plugin import Family\nFAMILIES = (Family('Sty les', 'style', object),)",
        "lower-case",
    ),
    "its family has no title": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', '', object),)",
        "title",
    ),
    "its contract is none": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', 'style', 42),)",
        "contract",
    ),
    "its names are none": (
        "from svc.plugin import Family\nFAMILIES = (Family('styles', 'style', object, 42),)",
        "names",
    ),
}


@pytest.mark.parametrize("case", BROKEN_APIS)
def test_a_driver_with_a_broken_api_is_named_and_its_extensions_rest(strangers, case):
    api, words = BROKEN_APIS[case]
    driver, loud = strangers.driver(api=api), strangers.extension("loud")
    plugins = load_plugins([driver, loud])
    problem = only_problem(plugins, driver)
    assert problem.kind is ProblemKind.BROKEN
    assert words in problem.message
    assert plugins.registries.health_checks.owner("loud") == loud
    assert [finding.code for finding in plugin_findings(plugins)] == ["plugin.broken"]


def test_a_driver_whose_implementation_is_broken_takes_its_families_with_it(strangers):
    driver, loud = strangers.driver(plugin="raise RuntimeError('no luck')"), strangers.extension("loud")
    plugins = load_plugins([driver, loud])
    only_problem(plugins, driver)
    assert "styles" not in plugins.registries.named()
    assert [item.rests for item in describe_plugins(plugins) if item.id == loud] == [["test.greeter:styles"]]


def test_of_two_drivers_with_one_family_always_the_same_one_stays(strangers):
    first, second = strangers.driver("one"), strangers.driver("two")
    theirs, others = strangers.extension("calm", driver="one"), strangers.extension("loud", driver="two")
    for order in ([first, second, theirs, others], [others, theirs, second, first]):
        plugins = load_plugins(order)
        problem = only_problem(plugins, second)
        assert problem.kind is ProblemKind.DUPLICATE
        assert first in problem.message
        # What extends the other driver is not given to this one.
        assert added(plugins) == {"calm": theirs}
        assert plugins.registries.health_checks.owner("loud") == others


def test_families_of_the_kernel_cannot_be_driven(strangers):
    problem = only_problem(load_plugins([strangers.driver(family="routes")]), "test.greeter")
    assert problem.kind is ProblemKind.DUPLICATE
    assert "belongs to the kernel" in problem.message


@pytest.mark.parametrize(
    "fields",
    [
        {"families": "svc_x"},
        {"families": "svc_x.api:FAMILIES"},
        {"families": 42},
        {"extends": "query:index_types"},
        {"extends": ("query",)},
        {"extends": ("query:Index",)},
        {"extends": (42,)},
    ],
)
def test_a_descriptor_says_in_order_what_it_drives_and_extends(fields):
    with pytest.raises(PluginError):
        PluginDescriptor("test.x", "1", "s", (1, 1), "m", **fields)


# Boots that fill some families only ------------------------------------------------------------------------


def test_a_boot_for_commands_imports_neither_families_nor_extensions(strangers):
    driver = strangers.driver(plugin="")
    plugins = load_plugins([driver, strangers.extension("loud")], families=("commands",))
    assert plugins.problems == ()
    assert not plugins.registries.driven
    assert "svc_test_greeter.api" not in sys.modules


def test_a_boot_for_one_family_fills_that_one_alone(strangers):
    ids = [strangers.driver(), strangers.driver("other", "colours"), strangers.extension("loud")]
    plugins = load_plugins(ids, families=("test.greeter:styles",))
    assert plugins.problems == ()
    assert added(plugins) == {"loud": "test.loud"}
    assert len(plugins.registries.health_checks) == 0
    assert set(plugins.registries.driven) == {"styles"}
