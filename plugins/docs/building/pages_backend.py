"""The build backend: that of setuptools, which first builds the pages that a wheel or an sdist holds.

An editable install builds none, so that a checkout is ready at once. An sdist holds the pages; a wheel that
is made of one takes them as they are.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403 - a backend is what these names are

_PROJECT = Path(__file__).resolve().parents[1]
_REQUIREMENTS = ["furo>=2025.12", "griffelib>=2.0", "myst-parser>=5.2", "pygraphviz>=2.0", "sphinx>=9.0"]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What builds the pages, where they are built here."""
    return build_meta.get_requires_for_build_wheel(config_settings) + _more()


def get_requires_for_build_sdist(config_settings: dict[str, Any] | None = None) -> list[str]:
    """See above."""
    return build_meta.get_requires_for_build_sdist(config_settings) + _more()


def build_wheel(directory: str, config_settings: Any = None, metadata_directory: str | None = None) -> str:
    """Builds the wheel with its pages."""
    _build_pages()
    # What setuptools left there before goes into a wheel too.
    shutil.rmtree(_PROJECT / "build" / "lib", ignore_errors=True)
    return build_meta.build_wheel(directory, config_settings, metadata_directory)


def build_sdist(directory: str, config_settings: Any = None) -> str:
    """Builds the sdist with its pages."""
    _build_pages()
    return build_meta.build_sdist(directory, config_settings)


def _more() -> list[str]:
    from build_pages import is_checkout, is_current

    return _REQUIREMENTS if is_checkout() and not is_current() else []


def _build_pages() -> None:
    from build_pages import MANIFEST, build, is_checkout, is_current

    if is_checkout():
        if not is_current():
            build()
    elif not MANIFEST.is_file():
        raise SystemExit(f"There is no {MANIFEST}: build from a checkout of svc, or from an sdist.")
