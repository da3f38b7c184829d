"""The format of the library is known before the library is loaded."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

from svc_index_fulltext import format as format_module
from svc_index_fulltext.format import FORMAT, format_of

PROGRAM = """
import sys
from svc.plugins import load_plugins
plugins = load_plugins()
assert plugins.registries.driven["index_types"].registry.get("fulltext") is not None
sys.exit("tantivy" in sys.modules)
"""


def test_the_number_is_what_the_library_itself_says() -> None:
    assert format_of(None) == FORMAT


def test_a_release_that_is_not_known_is_asked() -> None:
    assert format_of("999.0") == format_of(None)


def test_the_installed_release_is_known() -> None:
    assert version("tantivy") in format_module._OF_RELEASES


def test_a_boot_of_all_plugins_does_not_load_the_library() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
