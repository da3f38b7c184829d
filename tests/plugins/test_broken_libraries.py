"""A library that is installed and can't be loaded: the plugin that needs it is broken, and says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from svc_blackbox.prepared import run_svc

BROKEN = 'raise ImportError("libtantivy.so: cannot open shared object file")\n'


def svc(environment: dict[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("svc")
    return subprocess.run(
        [program, *words], env=environment, capture_output=True, text=True, timeout=60, check=False
    )


def test_the_diagnosis_tells_of_a_full_text_library_that_cannot_be_loaded(tmp_path: Path) -> None:
    database = str(tmp_path / "broken.svcdb")
    whole = {name: value for name, value in os.environ.items() if not name.startswith("SVC_")}
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("a")
    run_svc("load", "-D", database, tmp_path / "folder")
    run_svc("plugins", "doctor", "-D", database)
    (tmp_path / "libraries" / "tantivy").mkdir(parents=True)
    (tmp_path / "libraries" / "tantivy" / "__init__.py").write_text(BROKEN)
    broken = {**whole, "PYTHONPATH": str(tmp_path / "libraries")}
    doctor = svc(broken, "plugins", "doctor", "-D", database, "--json")
    assert doctor.returncode == 10
    found = json.loads(doctor.stdout)
    assert ("plugin.broken", "index.fulltext") in [(item["code"], item["source"]) for item in found]
    assert svc(broken, "status", "-D", database).returncode == 13
    run_svc("plugins", "doctor", "-D", database)
