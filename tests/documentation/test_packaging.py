"""What somebody installs has the pages in it: a wheel, also one that is made of the sdist."""

from __future__ import annotations

import json
import shutil
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from documentation.conftest import ROOT

pytestmark = pytest.mark.timeout(400)
"""Whoever comes first may have to build the pages."""


def test_the_wheel_of_the_sdist_has_all_pages(pages: Path, tmp_path: Path) -> None:
    uv = shutil.which("uv")
    assert uv, "uv is not installed"
    # Without a word about what to build, uv builds an sdist, and a wheel of that.
    done = subprocess.run(
        [uv, "build", "--quiet", "--out-dir", str(tmp_path), str(ROOT / "plugins" / "docs")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    manifest = json.loads((pages / "manifest.json").read_bytes())
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        files = {one.filename: one.file_size for one in archive.infolist()}
    for name, built in manifest["files"].items():
        assert files.pop(f"svc_docs/pages/{name}") == built["size"], name
    assert not [name for name in files if name.startswith("svc_docs/pages/") and "manifest.json" not in name]
    names = {"SKILL.md", "api.html", "_swagger-ui/swagger-ui-bundle.js", "_swagger-ui/swagger-ui.css"}
    names |= {f"_swagger-ui/{name}" for name in ("swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE")}
    assert {f"svc_docs/static/{name}" for name in names} <= set(files)
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        assert any(name.endswith("building/pages_backend.py") for name in archive.getnames())
