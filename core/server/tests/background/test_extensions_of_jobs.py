"""A job that runs on finds what other plugins add to the family of its plugin, as it is at each run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from svc.database import Database
from svc.plugins import disable, enable, load_plugins
from svc_server.background.work import BackgroundWork
from svc_testing import DistributionFactory

DESCRIPTORS = """
from svc.plugins import PluginDescriptor

def describe(name, **fields):
    return PluginDescriptor("test." + name, "1.0", "For tests", (1, 1), "svc_test_errands." + name, **fields)

DRIVER = describe("driver", families="svc_test_errands.api")
ERRAND = describe("errand", extends=("test.driver:errands",))
"""
API = '''
from svc.plugins import Family, hookspec

@hookspec
def svc_register_errands(errands):
    """Adds errands. Called at boot."""

ERRANDS = Family("errands", "errand", object)
FAMILIES = (ERRANDS,)
'''
DRIVER = """
from svc.plugins import BackgroundJob, hookimpl
from svc_test_errands.api import ERRANDS

seen = []

class RunErrands(BackgroundJob):
    name = "run-errands"
    interval_s = 0.01

    def run(self, context):
        seen[:] = [(name, item.context.plugin_id) for name, item in context.extensions(ERRANDS).items()]

@hookimpl
def svc_background(context, jobs):
    jobs.add(RunErrands())
"""
ERRAND = """
from svc.plugins import hookimpl

class Errand:
    name = "shopping"

@hookimpl
def svc_register_errands(errands):
    errands.add(Errand())
"""


def test_a_job_finds_what_is_enabled_while_it_runs(
    database: Database, distributions: DistributionFactory, eventually: Callable[..., Any]
) -> None:
    sources = {"descriptors": DESCRIPTORS, "api": API, "driver": DRIVER, "errand": ERRAND}
    ids = {f"test.{name}": f"svc_test_errands.descriptors:{name.upper()}" for name in ("driver", "errand")}
    distributions.install(
        "svc-test-errands",
        modules={f"svc_test_errands.{name}": source for name, source in sources.items()},
        entry_points=ids,
    )
    plugins = load_plugins(list(ids))
    assert plugins.problems == ()
    enable(database, plugins, "test.driver")
    seen = sys.modules["svc_test_errands.driver"].seen

    def finds(*expected: tuple[str, str]) -> Callable[[], bool]:
        def look() -> bool:
            running.follow_plugins()
            return seen == [*expected]

        return look

    running = BackgroundWork(database, plugins, 1)
    running.start()
    try:
        for _ in range(2):
            enable(database, plugins, "test.errand")
            eventually(finds(("shopping", "test.errand")))
            disable(database, plugins, "test.errand")
            eventually(finds())
    finally:
        running.stop()
