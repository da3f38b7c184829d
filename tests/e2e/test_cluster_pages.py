"""The pages that show how to begin a cluster do what they say."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from svc_blackbox.server import svc_environment, svc_program
from svc_testing import free_port

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.timeout(400)
def test_two_nodes_in_five_minutes(tmp_path: Path) -> None:
    page = (DOCS / "sync" / "two-nodes.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) == 5
    script = "".join(blocks)
    for port in ("6831", "6832"):
        assert port in script
        script = script.replace(port, str(free_port()))
    script = re.sub(r"\bsvc (?=start|sync|log)", f"{svc_program()} ", script)
    done = run_in_own_group(script, tmp_path)
    assert done.returncode == 0, done
    assert done.stdout.count("svc ready at") == 3
    assert "\nhello\n" in done.stdout
    assert "written while one was away" in done.stdout
    assert re.search(r"@\d+ .*merged from node \d+", done.stdout), done.stdout


def run_in_own_group(script: str, directory: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script; whatever it has started ends with it."""
    with subprocess.Popen(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=directory,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**svc_environment(), "TMPDIR": str(directory)},
        start_new_session=True,
    ) as process:
        try:
            output, errors = process.communicate(timeout=380)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return subprocess.CompletedProcess(script, process.returncode, output, errors)


def test_nginx_takes_the_configuration_of_five_nodes(tmp_path: Path) -> None:
    """With a certificate of the test, and names that there are."""
    nginx = shutil.which("nginx")
    assert nginx is not None
    made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=files.example.org")
    subprocess.run(
        [*made, "-keyout", "key.pem", "-out", "cert.pem"], cwd=tmp_path, check=True, capture_output=True
    )
    text = (DOCS / "deploying" / "cluster.conf").read_text()
    text = re.sub(r"node\d\.example\.org", "127.0.0.1", text)
    text = text.replace("/etc/ssl/files.example.org.pem", str(tmp_path / "cert.pem"))
    text = text.replace("/etc/ssl/files.example.org.key", str(tmp_path / "key.pem"))
    text = text.replace("/etc/ssl/certs/ca-certificates.crt", str(tmp_path / "cert.pem"))
    config = tmp_path / "nginx.conf"
    config.write_text(f"pid {tmp_path}/nginx.pid;\nevents {{}}\nhttp {{\naccess_log off;\n{text}}}\n")
    done = subprocess.run([nginx, "-t", "-e", "stderr", "-c", str(config)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
