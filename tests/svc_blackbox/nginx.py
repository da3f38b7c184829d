"""nginx in front of a server."""

from __future__ import annotations

import contextlib
import os
import socket
import string
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from svc_blackbox.server import free_port

_CONFIGURATION = string.Template("""
daemon off;
worker_processes 1;
pid $directory/nginx.pid;
error_log $directory/nginx.log;
events { worker_connections 64; }
http {
    access_log off;
    client_body_temp_path $directory/body;
    proxy_temp_path $directory/proxy;
    fastcgi_temp_path $directory/fastcgi;
    uwsgi_temp_path $directory/uwsgi;
    scgi_temp_path $directory/scgi;
$served
}
""")


@contextlib.contextmanager
def running_nginx(directory: Path, served: str, url: str) -> Iterator[int]:
    """Starts nginx with its files in a directory, and ends it; gives its port.

    ``served`` stands in the block ``http``, with ``$directory``, ``$port`` and ``$url`` filled in.
    """
    port = free_port()
    block = string.Template(served).substitute(directory=directory, port=port, url=url)
    configuration = directory / "nginx.conf"
    configuration.write_text(_CONFIGURATION.substitute(directory=directory, served=block))
    command = ["nginx", "-c", str(configuration), "-p", str(directory)]
    if os.geteuid() == 0:
        # Else its worker would be nobody, who may not enter the directory.
        command += ["-g", "user root;"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError("nginx did not start")
