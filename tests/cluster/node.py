"""One node of the cluster: a server with its file, its clock and its disk."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

from cluster.network import Line
from crash.wrapping import WrappedServer
from svc_blackbox.client import TIMEOUT_S, Client
from svc_blackbox.server import Server, free_port, svc_program
from svc_cli.processes.registration import registered_processes

__all__ = ["Node"]

PLUGINS = (
    "auth.disabled,auth.self,users,files,versions,history,events,events.sse,tasks,task.gc,query,parsers,"
    "index.exact,sync,sync.http"
)
_SILENCE_S = "15"
_CLOCK = Path(__file__).parent / "clock"


class Node:
    """A server of the cluster.

    Args:
        name: of its file.
        directory: where that lies.
        workers: how many it has.
        has_own_clock: whether its clock can be moved.
        has_faulty_disk: whether its disk can be told that it is full.
        has_address: whether it tells others where it is, and no lines lead to it.

    Attributes:
        lines: to the others, by their names.
        writing: held by whoever writes on the node, and by what must not meet a write.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        workers: int = 1,
        *,
        has_own_clock: bool = False,
        has_faulty_disk: bool = False,
        has_address: bool = False,
    ) -> None:
        self.name = name
        self.file = directory / f"{name}.svcdb"
        self.port = free_port()
        self.has_own_clock = has_own_clock
        self._clock = directory / f"{name}.clock"
        self.lines: dict[str, Line] = {}
        self.writing = threading.Lock()
        self.is_up = False
        self.has_faulty_disk = has_faulty_disk
        self._workers = workers
        self._has_address = has_address
        self._control = str(directory / f"{name}.fiu")
        variables = {"SVC_PLUGINS": PLUGINS}
        if has_faulty_disk:
            program = ["fiu-run", "-x", "-f", self._control, svc_program()]
            self.server: Server = WrappedServer(self.file, program)
        else:
            self.server = Server(self.file)
        if has_own_clock:
            variables |= {"CLUSTER_CLOCK": str(self._clock), "PYTHONPATH": str(_CLOCK)}
            self.server.program = svc_program()
        self.server.environment = variables

    def start(self) -> None:
        """Starts the server on its port."""
        options = [
            "-D",
            str(self.file),
            "--auth",
            "disabled",
            "--host",
            "127.0.0.1",
            "--port",
            str(self.port),
        ]
        options += ["--workers", str(self._workers), "--access-log", "false", "--cluster-label", self.name]
        options += ["--plugin-option", "sync.interval_seconds=1"]
        options += ["--plugin-option", f"sync.http.timeout_seconds={_SILENCE_S}"]
        if self._has_address:
            options += ["--cluster-address", f"http://127.0.0.1:{self.port}"]
        if self.lines:
            options += ["--peers", ",".join(line.address for line in self.lines.values())]
        self.server.start_with(*options)
        self.is_up = True

    def client(self, timeout: float = TIMEOUT_S) -> Client:
        """A new connection, past the lines."""
        return Client(f"http://127.0.0.1:{self.port}", timeout)

    def kill(self) -> None:
        """Ends all processes at once."""
        self.is_up = False
        self.server.kill()

    def stop(self) -> None:
        """Ends the server as it wants to end."""
        self.is_up = False
        self.server.stop()

    def processes(self, *kinds: str) -> list[int]:
        """The processes of some kinds, or all but the master."""
        living = registered_processes(Path(f"{self.file}.d"))
        return [one.pid for one in living if one.kind in (kinds or ("worker", "background"))]

    def kill_some(self, kind: str) -> None:
        """Kills the background process or the workers; the master starts others."""
        for pid in self.processes(kind):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def tell_disk(self, command: str) -> None:
        """Sends a command of libfiu to all processes; one that ends meanwhile need not hear of it."""
        for pid in self.processes():
            words = ["fiu-ctrl", "-f", self._control, "-c", command, str(pid)]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(words, check=False, timeout=5, capture_output=True)

    def copy_to(self, place: Path) -> None:
        """Copies the file of a server that does not run."""
        assert not self.is_up
        shutil.copyfile(self.file, place)

    def set_clock(self, seconds_ahead: float) -> None:
        """Moves the clock, forth or back."""
        beside = self._clock.with_suffix(".new")
        beside.write_text(str(seconds_ahead))
        beside.replace(self._clock)

    def put_back(self, place: Path) -> None:
        """Puts an older copy in the place of the file."""
        assert not self.is_up
        shutil.copyfile(place, self.file)
        shutil.rmtree(f"{self.file}.d")

    def close(self) -> None:
        """Ends what runs."""
        self.is_up = False
        self.server.close()
