"""Distributions made on the spot, and the sources of their modules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.family_material import Strangers

from svc_testing.distributions import DistributionFactory

DESCRIPTOR = """
from svc.plugins import PluginDescriptor

PLUGIN = PluginDescriptor(
    id={id!r},
    version={version!r},
    summary="A plugin of a test",
    api={api!r},
    implementation={implementation!r},
)
"""


@pytest.fixture
def distributions(tmp_path: Path) -> Iterator[DistributionFactory]:
    factory = DistributionFactory(tmp_path / "distributions")
    yield factory
    factory.close()


@pytest.fixture
def strangers(distributions: DistributionFactory) -> Strangers:
    return Strangers(distributions)


@pytest.fixture
def install(distributions: DistributionFactory) -> Callable[..., str]:
    """Installs a plugin ``test.<name>`` whose implementation is the given source; returns its id."""

    def install_plugin(
        name: str,
        source: str = "",
        *,
        descriptor: str | None = None,
        api: tuple[int, int] = (1, 1),
        version: str = "1.0",
        implementation: str | None = None,
        distribution: str | None = None,
        plugin_id: str | None = None,
    ) -> str:
        package = f"svc_test_{name}"
        identifier = plugin_id or f"test.{name}"
        if descriptor is None:
            descriptor = DESCRIPTOR.format(
                id=identifier, version=version, api=api, implementation=implementation or f"{package}.plugin"
            )
        distributions.install(
            distribution or f"svc-test-{name}",
            version=version,
            modules={
                f"{package}.descriptor": descriptor,
                f"{package}.plugin": "from svc.plugins import *\n" + source,
            },
            entry_points={identifier: f"{package}.descriptor:PLUGIN"},
        )
        return identifier

    return install_plugin
