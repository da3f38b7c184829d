"""The pages about the kernel's hooks say what the code says, and their samples work."""

from __future__ import annotations

from pathlib import Path

from svc.plugins import hookspecs
from svc.plugins.hook_check import HOOK_NAMES
from svc.plugins.registries import make_registries
from svc_testing import HookPagesContract
from svc_testing.hook_pages import hook_signatures


class TestPages(HookPagesContract):
    directory = Path(__file__).parents[4] / "docs" / "hooks"
    specifications = hookspecs


def test_every_hook_of_the_kernel_is_specified():
    assert set(hook_signatures(hookspecs)) == HOOK_NAMES


def test_every_registry_has_a_hook_and_the_other_way_round():
    assert {f"svc_register_{family}" for family in make_registries().named()} == {
        name for name in HOOK_NAMES if name.startswith("svc_register_")
    }
