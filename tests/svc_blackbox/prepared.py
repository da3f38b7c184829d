"""Runs ``svc`` commands in forks of a process that has imported it already, for tests with many commands.

Each command has a process of its own, with its own arguments, input, output and exit code, as from a shell;
only the time of starting Python and importing is saved. ``python -m svc_blackbox.prepared`` is that process:
it takes one request a line on its standard input and answers with one line each.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from svc_blackbox.server import svc_environment, svc_program

_COMMANDS = (
    *("snapshot", "fork", "log", "export", "import", "diff", "promote", "dump", "load", "info", "verify"),
    *("put", "cat", "get", "ls", "rm"),
)
_MODULES = (
    *("svc.database", "svc.plugins", "svc.pipeline.openapi", "svc.pipeline.system_responders"),
    *("svc_cli.processes.diagnosis", "svc_cli.progress", "svc_cli.service", "svc_cli.plugins_command"),
    *("svc_cli.command_check", "svc_cli.any_operation", "svc_client"),
)


@functools.cache
def _process(variables: frozenset[tuple[str, str]]) -> subprocess.Popen[bytes]:
    """Returns the one for an environment: a test that changes ``PYTHONPATH`` has other plugins."""
    environment = dict(variables)
    tests = str(Path(__file__).parents[1])
    environment["PYTHONPATH"] = os.pathsep.join([tests, *filter(None, [environment.get("PYTHONPATH")])])
    process = subprocess.Popen(
        [sys.executable, "-m", "svc_blackbox.prepared"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    )
    atexit.register(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]
    process.wait(30)
    process.stdout.close()  # type: ignore[union-attr]


def run_svc(
    *arguments: object,
    check: bool = True,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Runs an ``svc`` command to its end; with ``check`` it must exit 0. A faster ``server.run_svc``.

    ``env`` is set on top of this process's variables; each set of them takes a process that is kept.
    """
    present = {**svc_environment(), **(env or {})}
    variables = {name: value for name, value in present.items() if name != "PYTEST_CURRENT_TEST"}
    process = _process(frozenset(variables.items()))
    assert process.stdin is not None
    assert process.stdout is not None
    words = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory(prefix="svc-prepared-") as directory:
        place = Path(directory)
        (place / "in").write_bytes(stdin or b"")
        process.stdin.write(json.dumps([directory, str(cwd or os.getcwd()), words]).encode() + b"\n")
        process.stdin.flush()
        code = int(process.stdout.readline())
        output, errors = (place / "out").read_bytes(), (place / "err").read_bytes()
    if check:
        assert code == 0, f"svc {' '.join(words)} exited {code}\n{output[-2000:]!r}\n{errors[-4000:]!r}"
    return subprocess.CompletedProcess([svc_program(), *words], code, output, errors)


def _serve() -> None:
    from svc_cli import main

    # What the commands need is imported here, once: each says how it is used, in a child of its own kind.
    for command in _COMMANDS:
        with (
            contextlib.suppress(SystemExit),
            open(os.devnull, "w") as nowhere,
            contextlib.redirect_stdout(nowhere),
        ):
            sys.argv = ["svc", command, "--help"]
            main()
    _import_what_commands_use()
    while line := sys.stdin.buffer.readline():
        directory, working_directory, words = json.loads(line)
        child = os.fork()
        if child == 0:
            _become(Path(directory), working_directory, words)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _import_what_commands_use() -> None:
    """The kernel, the client and all of the plugins: commands on a file load what their plugins consist of.

    What serves (``svc_server``, ``svc_worker``) stays out: a command that serves patches what it imports.
    """
    import importlib

    from svc.plugins import load_descriptors

    for module in _MODULES:
        importlib.import_module(module)
    for descriptor in load_descriptors():
        for name in descriptor.operations:
            importlib.import_module(name)
        _import_all_of(descriptor.package)


def _import_all_of(name: str) -> None:
    """A module, and all below it but what tests of plugins use."""
    import importlib
    import pkgutil

    module = importlib.import_module(name)
    for part in pkgutil.iter_modules(getattr(module, "__path__", ()), f"{name}."):
        if not part.name.endswith((".testing", ".__main__")):
            _import_all_of(part.name)


def _become(directory: Path, working_directory: str, words: list[str]) -> NoReturn:
    """In the child: is the command, and ends with its exit code."""
    from svc_cli import main

    code = 1
    try:
        for number, (name, flags) in enumerate(
            (("in", os.O_RDONLY), ("out", os.O_WRONLY | os.O_CREAT), ("err", os.O_WRONLY | os.O_CREAT))
        ):
            opened = os.open(directory / name, flags)
            os.dup2(opened, number)
            os.close(opened)
        os.chdir(working_directory)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.argv = ["svc", *words]
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    _serve()
