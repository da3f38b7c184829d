"""The boot: what is right is registered, what is wrong is named, and nothing wrong stops the rest."""

from __future__ import annotations

import sys

import pytest

from svc.errors import PluginError, PluginMissing, UsageError
from svc.plugins import (
    PluginProblem,
    ProblemKind,
    describe_plugins,
    load_plugins,
    parse_allowed,
    select_auth_mode,
)

GOOD_ROUTE = """
class Hello:
    def on_get(self, req, resp):
        pass

@hookimpl
def svc_register_routes(routes):
    routes.add("/{name}", Hello())
"""

AUTH_MODE = """
class Mode(AuthMode):
    name = {name!r}
    def authenticate(self, credentials):
        return None

@hookimpl
def svc_register_auth_modes(auth_modes):
    auth_modes.add(Mode())
"""

VIEW = """
from svc.plugin import View

class Empty(View):
    {}

@hookimpl
def svc_register_views(views):
    views.add(Empty())
"""


def route(path):
    return GOOD_ROUTE.replace('"/{name}"', repr(path))


def only_problem(plugins, plugin_id):
    problems = [problem for problem in plugins.problems if problem.plugin_id == plugin_id]
    assert len(problems) == 1, problems
    assert plugin_id not in plugins.descriptors
    return problems[0]


def test_a_good_plugin_is_registered_with_its_name(install):
    plugin_id = install("good", route("/good"))
    plugins = load_plugins([plugin_id])
    assert plugins.problems == ()
    assert [(item.template, item.plugin_id) for item in plugins.registries.routes.all()] == [
        ("/good", plugin_id)
    ]
    assert plugins.registries.routes.owner("/good") == plugin_id


def test_a_class_is_instantiated_and_a_module_attribute_is_found(install):
    source = """
class Implementation:
    @hookimpl
    def svc_register_health_checks(self, health_checks):
        class Check(HealthCheck):
            name = "fine"
            def check(self, context):
                return HealthReport()
        health_checks.add(Check())
"""
    plugin_id = install("classy", source, implementation="svc_test_classy.plugin:Implementation")
    plugins = load_plugins([plugin_id])
    assert plugins.problems == ()
    assert plugins.registries.health_checks.get("fine") is not None


def test_an_empty_list_loads_nothing_and_imports_nothing(install):
    install("absent", "raise RuntimeError('imported')")
    plugins = load_plugins([])
    assert not plugins.descriptors
    assert not plugins.problems
    assert "svc_test_absent.descriptor" not in sys.modules


def test_code_that_is_not_allowed_is_never_imported(install):
    good = install("good", route("/good"))
    install("forbidden", "raise RuntimeError('imported')")
    plugins = load_plugins([good])
    assert "test.forbidden" in plugins.installed
    assert not any(name.startswith("svc_test_forbidden") for name in sys.modules)


def test_a_registry_that_is_not_wanted_stays_empty_and_the_others_are_filled(install):
    source = (
        route("/good")
        + """
@hookimpl
def svc_register_health_checks(health_checks):
    class Check(HealthCheck):
        name = "fine"
        def check(self, context):
            return HealthReport()
    health_checks.add(Check())
"""
    )
    plugin_id = install("good", source)
    plugins = load_plugins([plugin_id], without=("routes",))
    assert plugins.problems == ()
    assert list(plugins.registries.routes.all()) == []
    assert plugins.registries.health_checks.get("fine") is not None


def test_a_plugin_that_another_boot_found_broken_is_out_of_use(install):
    good, broken = install("good", route("/good")), install("broken", "raise RuntimeError('imported')")
    problem = PluginProblem(broken, ProblemKind.DUPLICATE, "A name is taken.")
    plugins = load_plugins([good, broken], without=("routes",), known=[problem])
    assert plugins.problems == (problem,)
    assert list(plugins.descriptors) == [good]


def test_without_a_list_everything_installed_is_loaded(install):
    good = install("good", route("/good"))
    assert good in load_plugins().descriptors


@pytest.mark.parametrize(
    ("text", "expected"),
    [(None, None), ("", ()), (" ", ()), ("a", ("a",)), ("a,b", ("a", "b")), ("a, b  c,a", ("a", "b", "c"))],
)
def test_a_list_of_ids_is_read(text, expected):
    assert parse_allowed(text) == expected


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("import does_not_exist_anywhere", "ModuleNotFoundError"),
        ("raise RuntimeError('no luck')", "RuntimeError: no luck"),
        ("import sys; sys.exit(3)", "SystemExit"),
        ("def (", "SyntaxError"),
        ("@hookimpl\ndef svc_register_routes(routes, wrong): pass", "wrong"),
        ("@hookimpl\ndef svc_register_routes(routes=None): pass", "default"),
        ("def svc_register_routes(routes): pass", "@hookimpl"),
        ("@hookimpl(wrapper=True)\ndef svc_register_routes(routes): yield", "wrapper"),
        ("@hookimpl\ndef svc_register_routes(routes): raise KeyError('lost')", "svc_register_routes"),
        ("@hookimpl\ndef svc_register_routes(routes): raise SystemExit", "svc_register_routes"),
        ("@hookimpl\ndef svc_register_routes(routes): routes.add('/x', object)", "instance is needed"),
        ("@hookimpl\ndef svc_register_routes(routes): routes.add('/x', object())", "no responder"),
        ("@hookimpl\ndef svc_register_routes(routes): routes.add('x', object())", "begins with"),
        (
            "@hookimpl\ndef svc_register_health_checks(health_checks): health_checks.add(HealthCheck)",
            "instance is needed",
        ),
        (
            "@hookimpl\ndef svc_register_health_checks(health_checks): health_checks.add(42)",
            "not an instance of HealthCheck",
        ),
        ("@hookimpl\ndef svc_register_views(views): views.add(42)", "not an instance of View"),
        (VIEW.format("name = 'x'"), "no format number"),
        (VIEW.format("name, format = 'x', 1"), "no method apply"),
        (
            "@hookimpl\ndef svc_register_storage_backends(storage_backends): storage_backends.add(42)",
            "no scheme",
        ),
    ],
)
def test_a_broken_plugin_is_named_and_the_others_go_on(install, source, words):
    broken = install("broken", source)
    good = install("good", route("/good"))
    plugins = load_plugins([broken, good])
    problem = only_problem(plugins, broken)
    assert problem.kind is ProblemKind.BROKEN
    assert words in problem.message
    assert good in plugins.descriptors
    assert plugins.registries.routes.get("/good") is not None


MAKE = "from svc.plugins import PluginDescriptor\nPLUGIN = PluginDescriptor({!r}, '1', 's', (1, 1), 'm')"


@pytest.mark.parametrize(
    ("descriptor", "words"),
    [
        ("raise RuntimeError('no descriptor')", "no descriptor"),
        ("", "PLUGIN"),
        ("PLUGIN = 42", "not a PluginDescriptor"),
        (MAKE.format("Bad Id"), "lower-case"),
        (MAKE.format("test.other"), "test.other"),
    ],
)
def test_a_broken_descriptor_is_named(install, descriptor, words):
    problem = only_problem(load_plugins([install("broken", descriptor=descriptor)]), "test.broken")
    assert problem.kind is ProblemKind.BROKEN
    assert words in problem.message


@pytest.mark.parametrize(
    "body", ["1 / 0", "from svc.plugins import *\n@hookimpl\ndef svc_register_views(views): 1 / 0"]
)
def test_what_failed_is_in_the_log_with_its_trace(install, caplog, body):
    with caplog.at_level("INFO", logger="svc.plugins"):
        only_problem(load_plugins([install("broken", body)]), "test.broken")
    (traced,) = [record for record in caplog.records if record.exc_info]
    assert traced.exc_info[0] is ZeroDivisionError
    assert "test.broken" in traced.getMessage()


def test_a_broken_plugin_is_described_by_its_own_words(install):
    plugins = load_plugins([install("broken", "1 / 0")])
    (report,) = [one for one in describe_plugins(plugins) if one.id == "test.broken"]
    assert report.problem_kind == "broken"
    assert (report.summary, report.version) == ("A plugin of a test", "1.0")


@pytest.mark.parametrize("implementation", ["svc_test_lost.nowhere", "svc_test_lost.plugin:Nothing"])
def test_a_missing_implementation_is_named(install, implementation):
    problem = only_problem(load_plugins([install("lost", implementation=implementation)]), "test.lost")
    assert problem.kind is ProblemKind.BROKEN
    assert implementation in problem.message


@pytest.mark.parametrize(("api", "kind"), [((2, 3), ProblemKind.TOO_NEW), ((99, 99), ProblemKind.TOO_NEW)])
def test_a_plugin_for_a_later_kernel_is_too_new(install, api, kind):
    plugins = load_plugins([install("later", "raise RuntimeError('imported')", api=api)])
    problem = only_problem(plugins, "test.later")
    assert problem.kind is kind
    assert str(api[0]) in problem.message


def test_what_lacks_an_attribute_of_its_contract_is_refused(install):
    body = """
from svc.plugins import *
class Check(HealthCheck):
    def check(self, context):
        return HealthReport()
@hookimpl
def svc_register_health_checks(health_checks):
    health_checks.add(Check())
"""
    assert (
        "it has no name" in only_problem(load_plugins([install("nameless", body)]), "test.nameless").message
    )


def test_a_plugin_for_an_earlier_kernel_is_too_old(install, monkeypatch):
    monkeypatch.setattr("svc.plugins.loading.API_VERSION", 3)
    problem = only_problem(load_plugins([install("earlier", api=(1, 2))]), "test.earlier")
    assert problem.kind is ProblemKind.TOO_OLD


def test_a_misspelt_hook_is_named_with_the_right_spelling(install):
    plugins = load_plugins([install("misspelt", "@hookimpl\ndef svc_register_rotues(routes): pass")])
    problem = only_problem(plugins, "test.misspelt")
    assert problem.kind is ProblemKind.UNKNOWN_HOOK
    assert "svc_register_routes" in problem.message


def test_an_optional_hook_of_a_later_kernel_is_no_problem(install):
    source = "@hookimpl(optionalhook=True)\ndef svc_register_dreams(dreams): pass"
    assert load_plugins([install("early", source)]).problems == ()


def test_an_allowed_plugin_that_is_not_installed_is_missing():
    problem = only_problem(load_plugins(["test.nowhere"]), "test.nowhere")
    assert problem.kind is ProblemKind.MISSING


def test_an_id_claimed_by_two_distributions_is_used_from_neither(install):
    first = install("one", route("/one"), plugin_id="test.claimed", distribution="svc-first")
    install("two", route("/two"), plugin_id="test.claimed", distribution="svc-second")
    plugins = load_plugins([first])
    problem = only_problem(plugins, first)
    assert problem.kind is ProblemKind.DUPLICATE
    assert "svc-first" in problem.message
    assert "svc-second" in problem.message
    assert len(plugins.registries.routes) == 0


def test_of_two_plugins_that_add_the_same_name_always_the_same_one_stays(install):
    one, two = install("a", route("/same/{x}")), install("b", route("/same/{y}"))
    for order in ([one, two], [two, one]):
        plugins = load_plugins(order)
        problem = only_problem(plugins, two)
        assert problem.kind is ProblemKind.DUPLICATE
        assert one in problem.message
        assert one in plugins.descriptors


def test_everything_of_a_plugin_that_fails_halfway_is_withdrawn(install):
    source = (
        route("/half")
        + AUTH_MODE.format(name="half")
        + "\n@hookimpl\ndef svc_register_health_checks(health_checks): raise RuntimeError('late')\n"
    )
    half = install("half", source)
    other = install("other", route("/half"))
    plugins = load_plugins([half, other])
    only_problem(plugins, half)
    assert plugins.registries.auth_modes.get("half") is None
    assert plugins.registries.routes.owner("/half") == other


@pytest.mark.parametrize("path", ["/system/health", "/system/plugins/{any_id}/enable"])
def test_routes_of_the_kernel_cannot_be_taken(install, path):
    problem = only_problem(load_plugins([install("greedy", route(path))]), "test.greedy")
    assert "belongs to the kernel" in problem.message


def commands_of(plugin_id, *names):
    homes = [f"CommandHome({name!r}, 'svc_test.commands:command', 'Does it')" for name in names]
    return (
        "from svc.plugin import CommandHome, PluginDescriptor\n"
        f"PLUGIN = PluginDescriptor({plugin_id!r}, '1.0', 'For tests', (1, 1), "
        f"commands=({', '.join(homes)},))"
    )


def test_commands_of_the_kernel_cannot_be_taken(install):
    plugins = load_plugins([install("greedy", descriptor=commands_of("test.greedy", "start"))])
    assert "'start'" in only_problem(plugins, "test.greedy").message


def test_a_command_belongs_to_one_plugin(install):
    ids = [install(name, descriptor=commands_of(f"test.{name}", "moon")) for name in ("first", "second")]
    plugins = load_plugins(ids)
    assert list(plugins.descriptors) == ["test.first"]
    assert "'moon'" in only_problem(plugins, "test.second").message


@pytest.mark.parametrize("name", ["Moon", "", "two words"])
def test_a_command_has_a_word_for_a_name(install, name):
    plugins = load_plugins([install("odd", descriptor=commands_of("test.odd", name))])
    assert "commands" in only_problem(plugins, "test.odd").message


def test_a_route_that_the_check_refuses_disables_its_plugin(install):
    def refuse(found):
        raise PluginError(f"{found.template} declares nothing.")

    plugin_id = install("undeclared", route("/undeclared"))
    assert load_plugins([plugin_id]).problems == ()
    problem = only_problem(load_plugins([plugin_id], check_route=refuse), plugin_id)
    assert "/undeclared declares nothing." in problem.message


def test_registries_are_frozen_after_the_boot(install):
    source = "kept = []\n@hookimpl\ndef svc_register_routes(routes): kept.append(routes)\n"
    plugins = load_plugins([install("hoarder", source)])
    kept = sys.modules["svc_test_hoarder.plugin"].kept[0]

    class Late:
        def on_get(self, req, resp):
            pass

    with pytest.raises(PluginError, match="frozen"):
        kept.add("/late", Late())
    with pytest.raises(TypeError):
        plugins.registries.routes.values["/late"] = None
    with pytest.raises(TypeError):
        plugins.descriptors["test.late"] = None
    with pytest.raises(PluginError):
        plugins.registries.withdraw("test.hoarder")


def test_the_chosen_auth_mode_is_found_by_name_alias_and_argument(install):
    source = AUTH_MODE.format(name="card").replace("name = 'card'", "name = 'card'; aliases = ('badge',)")
    plugins = load_plugins([install("card", source)])
    assert select_auth_mode(plugins, "card").plugin_id == "test.card"
    assert select_auth_mode(plugins, "badge").mode.name == "card"
    assert select_auth_mode(plugins, "card:///etc/cards").argument == "/etc/cards"
    for text, right in (
        ("card:/etc/cards", "card:///etc/cards"),
        ("CARD:///etc/cards", "card:///etc/cards"),
        ("Card", "card"),
        ("card:", "card"),
        ("BADGE:x", "badge://x"),
    ):
        with pytest.raises(UsageError, match=f"--auth {right}\\.$"):
            select_auth_mode(plugins, text)


def test_an_argument_that_has_no_say_is_refused(install):
    source = AUTH_MODE.format(name="card").replace("name = 'card'", "name = 'card'; allows_argument = False")
    plugins = load_plugins([install("card", source)])
    assert select_auth_mode(plugins, "card").argument == ""
    for text in ("card://", "card:///etc/cards"):
        with pytest.raises(UsageError, match="--auth card takes no argument"):
            select_auth_mode(plugins, text)


def test_an_auth_mode_that_cannot_be_had_stops_the_start_and_nothing_takes_its_place(install):
    other = install("other", AUTH_MODE.format(name="other"))
    broken = install("guard", AUTH_MODE.format(name="guard") + "\nraise RuntimeError('guard is ill')")
    plugins = load_plugins([other, broken])
    with pytest.raises(PluginMissing) as caught:
        select_auth_mode(plugins, "guard")
    assert caught.value.exit_code == 11
    assert "guard is ill" in caught.value.message
    with pytest.raises(PluginMissing):
        select_auth_mode(load_plugins([]), "disabled")


def test_two_plugin_sets_of_one_name_are_none(distributions):
    for name in ("svc-set-one", "svc-set-two"):
        module = name.replace("-", "_")
        distributions.install(
            name,
            modules={module: "PLUGINS = ('test.x',)"},
            entry_points={"default": f"{module}:PLUGINS"},
            group="svc.plugin_sets",
        )
    plugins = load_plugins([])
    assert plugins.default_set == ()
    problem = next(item for item in plugins.problems if item.plugin_id == "set:default")
    assert problem.kind is ProblemKind.DUPLICATE
    assert "svc-set-one" in problem.message
    assert "svc-set-two" in problem.message
