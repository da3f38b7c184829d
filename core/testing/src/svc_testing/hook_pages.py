"""The contract of pages about hooks: they say what the specifications say, and their samples work."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import ClassVar

import pytest

from svc.plugins import load_plugins
from svc_testing.distributions import DistributionFactory

__all__ = ["HookPagesContract", "files_of_page", "hook_signatures"]

_SAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
_FILE = re.compile(r"^`([\w/.-]+)`:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DESCRIPTOR = """
from svc.plugins import PluginDescriptor

PLUGIN = PluginDescriptor({id!r}, "1.0", "A sample", (1, 1), {implementation!r}, extends={extends!r})
"""


class HookPagesContract:
    """Tests of a folder with a page for each hook: ``<hook>.md``, and a table of them in ``index.md``.

    A page begins with the exact signature as its heading, says when the hook is called, and has at least one
    sample in Python, each of which is the implementation of a plugin.

    Attributes:
        directory: the folder.
        specifications: the module with the functions that are marked with ``@hookspec``.
        driver_id: the plugin whose hooks they are; None for those of the kernel.
        needs: plugins that the driver needs.
    """

    directory: ClassVar[Path]
    specifications: ClassVar[ModuleType]
    driver_id: ClassVar[str | None] = None
    needs: ClassVar[tuple[str, ...]] = ()

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Runs what takes a ``hook`` for each of them."""
        if "hook" in metafunc.fixturenames:
            metafunc.parametrize("hook", sorted(hook_signatures(self.specifications)))

    @pytest.fixture
    def distributions(self, tmp_path: Path) -> Iterator[DistributionFactory]:
        """Where the samples are installed."""
        factory = DistributionFactory(tmp_path / "samples")
        yield factory
        factory.close()

    def test_every_hook_has_a_page_and_every_page_a_hook(self) -> None:
        """There is nothing in the folder that the code does not have."""
        assert {page.stem for page in self.directory.glob("svc_*.md")} == {
            *hook_signatures(self.specifications)
        }

    def test_the_index_names_every_hook_once(self) -> None:
        """The table links each page."""
        text = (self.directory / "index.md").read_text(encoding="utf-8")
        table = re.findall(r"^\| \[`(svc_\w+)`\]\(\1\.md\) \|", text, re.MULTILINE)
        assert sorted(table) == sorted(hook_signatures(self.specifications))

    def test_the_heading_is_the_exact_signature(self, hook: str) -> None:
        """A change of the arguments changes the page."""
        assert self._page(hook).splitlines()[0] == f"# `{hook_signatures(self.specifications)[hook]}`"

    def test_page_and_docstring_say_when_it_is_called(self, hook: str) -> None:
        """Authors need to know at what time, and in which process."""
        assert "**Called:**" in self._page(hook)
        assert "alled" in (getattr(self.specifications, hook).__doc__ or "")

    def test_the_samples_are_plugins_that_load(self, hook: str, distributions: DistributionFactory) -> None:
        """Each implements the hook, and adds something where the hook is one of registration."""
        from svc.pipeline import check_route

        samples = _SAMPLE.findall(self._page(hook))
        assert samples
        family = hook.removeprefix("svc_register_")
        for number, sample in enumerate(samples):
            assert f"def {hook}(" in sample
            plugin_id, package = f"docs.sample{number}", f"svc_sample_{hook}_{number}"
            extends = (f"{self.driver_id}:{family}",) if self.driver_id else ()
            descriptor = _DESCRIPTOR.format(id=plugin_id, implementation=f"{package}.plugin", extends=extends)
            distributions.install(
                package,
                modules={f"{package}.descriptor": descriptor, f"{package}.plugin": sample},
                entry_points={plugin_id: f"{package}.descriptor:PLUGIN"},
            )
            allowed = [plugin_id, *self.needs, *([self.driver_id] if self.driver_id else [])]
            plugins = load_plugins(allowed, check_route=check_route)
            assert plugins.problems == ()
            registry = plugins.registries.named().get(family)
            if registry is not None:
                assert registry.of_plugin(plugin_id)
            else:
                assert hook in plugins.hooks[plugin_id]

    def _page(self, hook: str) -> str:
        return (self.directory / f"{hook}.md").read_text(encoding="utf-8")


def hook_signatures(specifications: ModuleType) -> Mapping[str, str]:
    """Returns the signature of each hook that a module specifies, as its page's heading has it."""
    tree = ast.parse(inspect.getsource(specifications))
    return {
        node.name: f"{node.name}({ast.unparse(node.args)}) -> {ast.unparse(node.returns)}"
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and node.returns is not None
        and hasattr(getattr(specifications, node.name), "svc_spec")
    }


def files_of_page(page: Path) -> dict[str, str]:
    """Returns the files that a page shows: a name in backticks and a colon, then a block with the content."""
    return dict(_FILE.findall(page.read_text(encoding="utf-8")))
