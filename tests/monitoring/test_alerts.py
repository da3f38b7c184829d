"""The rules and the configuration that ``contrib/grafana`` has for Prometheus, as promtool reads them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from monitoring.prometheus import CONTRIB, program

HERE = CONTRIB / "prometheus"


def promtool(*words: str, cwd: Path = HERE) -> str:
    done = subprocess.run([program("promtool"), *words], cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_rules() -> None:
    assert "SUCCESS" in promtool("check", "rules", "svc.rules.yml")


def test_each_alert_fires_when_it_should_and_not_before() -> None:
    promtool("test", "rules", "svc.rules.test.yml")
    alerts = re.findall(r"- alert: (\w+)", (HERE / "svc.rules.yml").read_text())
    tested = re.findall(r"- name: (\w+)", (HERE / "svc.rules.test.yml").read_text())
    assert alerts == tested


def test_the_configuration_is_whole(tmp_path: Path) -> None:
    for path in HERE.glob("*.yml"):
        shutil.copy(path, tmp_path)
    (tmp_path / "scrape_token").write_text("x")
    assert "svc.rules.yml" in promtool("check", "config", "prometheus.yml", cwd=tmp_path)
