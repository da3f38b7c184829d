"""Two Syncthing nodes on this machine that share a directory, found by nobody else."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Self
from xml.etree import ElementTree as ET

import processes
from servers import free_port

__all__ = ["Pair"]

_START_S = 120.0
_FOLDER = "bench"
_STOP_S = 20.0


class Pair:
    """Both nodes, running while the block lasts.

    Args:
        directory: for their files; it is made.
        wait_s: for how long a node waits for further changes before it tells of one.
    """

    def __init__(self, directory: Path, wait_s: float) -> None:
        directory.mkdir()
        self._homes = [directory / name for name in "ab"]
        self._folders = [directory / f"folder-{name}" for name in "ab"]
        self._wait_s = wait_s
        self._running: list[subprocess.Popen[bytes]] = []
        self._ports = [(free_port(), free_port()) for _ in "ab"]

    def __enter__(self) -> Self:
        for home, folder in zip(self._homes, self._folders, strict=True):
            folder.mkdir()
            subprocess.run(
                ["syncthing", "generate", f"--home={home}", "--no-default-folder", "--skip-port-probing"],
                check=True,
                capture_output=True,
            )
        ids = [
            subprocess.run(
                ["syncthing", f"--home={home}", "--device-id"], check=True, capture_output=True, text=True
            ).stdout.strip()
            for home in self._homes
        ]
        for number in (0, 1):
            self._configure(number, ids)
        environment = {**os.environ, "STNODEFAULTFOLDER": "1", "STNOUPGRADE": "1"}
        for home in self._homes:
            command = ["syncthing", "serve", f"--home={home}", "--no-browser", "--no-restart"]
            with (home / "log").open("wb") as log:
                self._running.append(processes.start(command, env=environment, stdout=log, stderr=log))
        self.write("first")
        deadline = time.monotonic() + _START_S
        while not self.has("first"):
            if time.monotonic() > deadline:
                self.__exit__(None, None, None)
                raise RuntimeError(
                    f"Syncthing does not connect: {(self._homes[0] / 'log').read_text()[-2000:]}"
                )
            time.sleep(0.1)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self._running:
            processes.stop(process, _STOP_S)

    def write(self, name: str) -> None:
        """Writes a file on the first node; it is on the disk then."""
        beside = self._homes[0] / "written"
        with beside.open("w") as file:
            file.write(f'{{"x": "{name}"}}')
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, self._folders[0] / name)

    def has(self, name: str) -> bool:
        """Whether the second node shows a file."""
        return (self._folders[1] / name).exists()

    def _configure(self, number: int, ids: list[str]) -> None:
        place = self._homes[number] / "config.xml"
        tree = ET.parse(place)  # what Syncthing has written a moment ago
        root = tree.getroot()
        for kind in ("device", "folder"):
            for element in root.findall(kind):
                root.remove(element)
        for one, (port, _) in zip(ids, self._ports, strict=True):
            device = ET.SubElement(root, "device", id=one, name=one[:7], compression="metadata")
            ET.SubElement(device, "address").text = f"tcp://127.0.0.1:{port}"
        folder = ET.SubElement(
            root,
            "folder",
            id=_FOLDER,
            path=str(self._folders[number]),
            type="sendreceive",
            rescanIntervalS="3600",
            fsWatcherEnabled="true",
            fsWatcherDelayS=f"{self._wait_s:g}",
        )
        for one in ids:
            ET.SubElement(folder, "device", id=one)
        own, gui = self._ports[number]
        options = root.find("options")
        address = root.find("gui/address")
        assert options is not None
        assert address is not None
        address.text = f"127.0.0.1:{gui}"
        changed = {
            "listenAddress": f"tcp://127.0.0.1:{own}",
            "globalAnnounceEnabled": "false",
            "localAnnounceEnabled": "false",
            "relaysEnabled": "false",
            "natEnabled": "false",
            "urAccepted": "-1",
            "crashReportingEnabled": "false",
            "autoUpgradeIntervalH": "0",
            "reconnectionIntervalS": "1",
        }
        for name, text in changed.items():
            for element in options.findall(name):
                options.remove(element)
            ET.SubElement(options, name).text = text
        tree.write(place)
