"""gunicorn with one of the worker classes, in a process of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent


class Gunicorn:
    """A running server."""

    def __init__(
        self,
        directory: Path,
        *words: str,
        worker: str = "svc_worker.Worker",
        bind="127.0.0.1:0",
        application: str = "echo_app:app",
        **env,
    ):
        self.log_path = directory / f"gunicorn-{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "gunicorn", "--no-control-socket", "-k", worker, "-b", str(bind)]
        with self.log_path.open("w") as log:
            self.process = subprocess.Popen(
                [*command, "--graceful-timeout", "5", *words, application],
                cwd=directory,
                env={**os.environ, "PYTHONPATH": str(HERE), **env},
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.wait_for(r"Booting worker")
        host, _, port = str(bind).partition(":")
        if port == "0":
            port = self.wait_for(r"Listening at: \w+://127\.0\.0\.1:(\d+)")[1]
        self.address = port if host == "unix" else (host, int(port))

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def wait_for(self, pattern: str, seconds: float = 20.0) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if match := re.search(pattern, self.log):
                return match
            assert self.process.poll() is None, self.log
            time.sleep(0.02)
        raise AssertionError(self.log)

    def send_signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        if self.process.poll() is None:
            self.send_signal(number)
        return self.process.wait(15)

    def end(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(10)
