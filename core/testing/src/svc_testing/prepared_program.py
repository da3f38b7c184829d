"""The process that ``svc_testing.prepared`` forks servers from: ``python -P prepared_program.py SOCKET``.

A request is a JSON object. ``{"arguments", "env", "cwd"}`` comes with the three standard streams, and is
answered with the process id of a child; ``{"wait": pid}`` with the exit code of a child that has ended. The
process ends when nobody is left to ask.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

_MASTER = (
    "svc_cli",
    "svc_server.commands.start_command",
    "svc_server.listening",
    "svc_server.preflight",
    "svc_server.start",
    "svc_worker",
)
"""What the master of ``svc start`` imports before it forks."""
_LOCKING = ("gevent", "threading", "queue", "concurrent")
"""Packages whose objects are locks, or have some."""


def main() -> None:
    """Serves requests; in each child, returns as ``svc`` does."""
    gc.disable()
    sys.path.insert(0, str(Path(sys.executable).parent))
    import_early()
    _read_installed()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[1])) as asked:
        request, streams = _serve(asked)
    if request is None:
        return
    gc.enable()
    _become(request, streams)
    from svc_cli import main as run

    run()


def import_early() -> None:
    """Imports what the processes of a server do, but for modules that would be others under gevent."""
    for name in _MASTER:
        importlib.import_module(name)
    fit, unfit = _modules_of_plugins()
    # An import of one of these, and so of whatever imports it, fails here, and is made by the server itself.
    sys.modules.update(dict.fromkeys(unfit))  # type: ignore[arg-type]
    for name in fit:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    for name in unfit:
        del sys.modules[name]


def _read_installed() -> None:
    """Reads what is installed: a child has the answer, unless it is to import from other places too."""
    from svc.plugins import load_descriptors

    load_descriptors()


def _modules_of_plugins() -> tuple[list[str], list[str]]:
    """Returns which of our modules a boot of all plugins imports: those to be imported here, and the others.

    A child boots the plugins, so that nothing of the boot stays.
    """
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            from gevent import monkey

            from svc.plugins import load_plugins

            before = set(sys.modules)
            monkey.patch_all()
            for descriptor in load_plugins().descriptors.values():
                for operation in descriptor.declared_operations():
                    if operation.responder is not None:
                        importlib.import_module(operation.responder.partition(":")[0])
            names = [name for name in sys.modules if name not in before and name.startswith("svc")]
            unfit = sorted(modules_with_what_is_gevents(names))
            with os.fdopen(write, "w") as pipe:
                json.dump([[name for name in names if name not in unfit], unfit], pipe)
        finally:
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        fit, unfit = json.load(pipe)
    os.wait()
    return fit, unfit


def modules_with_what_is_gevents(names: Iterable[str]) -> set[str]:
    """Returns which modules keep a lock or a function of gevent's, in a process that gevent has patched.

    Imported early they would keep another one. A ``native_lock`` is the same in both.
    """
    from gevent import monkey

    places = [(sys.modules.get(place), saved) for place, saved in monkey.saved.items()]
    replaced = {
        id(getattr(place, name)): name for place, saved in places for name in saved if hasattr(place, name)
    }
    found = set()
    for name in names:
        members = vars(sys.modules[name])
        if any(type(one).__module__.partition(".")[0] in _LOCKING for one in _kept(members)):
            found.add(name)
        for attribute, value in members.items():
            if replaced.get(id(value)) == attribute.lstrip("_"):
                found.add(name)
    return found


def _kept(value: Any, depth: int = 4) -> Iterator[Any]:
    """Yields what a value holds: in containers, in objects and classes of ours."""
    yield value
    if depth == 0:
        return
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.values()
    elif isinstance(value, (list, tuple, set, frozenset)):
        inner = value
    elif (getattr(value, "__module__", None) or "").startswith("svc"):
        inner = getattr(value, "__dict__", {}).values()
    for one in inner:
        yield from _kept(one, depth - 1)


def _serve(asked: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Answers requests to the end; returns in each child that it forks, with what that child is to be."""
    while True:
        message, streams, _, _ = socket.recv_fds(asked, 1 << 20, 3)
        if not message:
            return None, []
        request = json.loads(message)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            asked.send(b"%d" % os.waitstatus_to_exitcode(status))
            continue
        child = os.fork()
        if child == 0:
            os.setsid()
            return request, streams
        for stream in streams:
            os.close(stream)
        asked.send(b"%d" % child)


def _become(request: dict[str, Any], streams: list[int]) -> None:
    """Makes this process what it would be if a shell had started it."""
    from gunicorn import config  # type: ignore[import-untyped]
    from gunicorn.util import getcwd  # type: ignore[import-untyped]

    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, max(streams) + 1)
    os.chdir(request["cwd"])
    environment = request["env"]
    os.environ.clear()
    os.environ.update(environment)
    # gunicorn keeps the directory in which it was imported.
    config.Chdir.default = getcwd()
    paths = environment.get("PYTHONPATH", "")
    sys.path[1:1] = paths.split(os.pathsep) if paths else ()
    sys.argv = ["svc", *request["arguments"]]
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))


if __name__ == "__main__":
    main()
