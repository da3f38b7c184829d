"""Parsers that do what none should. Child processes import them by name."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import sys
import threading
import time

from svc_query.api import Parser


class Echo(Parser):
    name = "echo"
    in_process = True

    def parse(self, content, source):
        return {
            "pid": os.getpid(),
            "name": source.name,
            "content_type": source.content_type,
            "size": source.size,
            "bytes": len(content.read()),
        }


class Surroundings(Parser):
    name = "surroundings"

    def parse(self, content, source):
        return {
            "environment": sorted(set(os.environ) - {"LC_CTYPE"}),
            "directory": os.getcwd(),
            "descriptors": [number for number in range(64) if _is_open(number)],
            "group": os.getpgrp() == os.getpid(),
        }


def _is_open(number):
    try:
        os.fstat(number)
    except OSError:
        return False
    return True


def outcome_of(function):
    try:
        function()
    except OSError as error:
        return type(error).__name__
    return "done"


class Reach(Parser):
    """Tries to get out; the content names a file to read and a process to signal."""

    name = "reach"

    def parse(self, content, source):
        path, pid = content.read().decode().split("\n")
        return {
            "socket": outcome_of(socket.socket),
            "socketpair": outcome_of(socket.socketpair),
            "program": outcome_of(lambda: subprocess.run(["/bin/true"], check=False)),
            "fork": outcome_of(os.fork),
            "replace": outcome_of(lambda: os.execv("/bin/true", ["true"])),
            "signal": outcome_of(lambda: os.kill(int(pid), 0)),
            "limits of another": outcome_of(lambda: _set_limits(int(pid))),
            "read": outcome_of(lambda: open(path).close()),
            "list": outcome_of(lambda: os.listdir(os.path.dirname(path))),
            "write": outcome_of(lambda: open(path, "a").close()),
            "make": outcome_of(lambda: open(path + ".new", "w").close()),
            "remove": outcome_of(lambda: os.unlink(path)),
            "memory of the pool": outcome_of(lambda: open(f"/proc/{pid}/environ").close()),
        }


def _set_limits(pid):
    import resource

    resource.prlimit(pid, resource.RLIMIT_CORE)


class Nested(Parser):
    name = "nested"

    class Inner(Parser):
        name = "inner"

        def parse(self, content, source):
            return "inner"

    def parse(self, content, source):
        return "outer"


def crash():
    ctypes.string_at(0)


def hold_processor():
    ctypes.CDLL(None).pause()


def loop():
    while True:
        pass


def eat_memory():
    parts = []
    while True:
        parts.append(bytearray(1 << 24))


def write_to_standard_output():
    os.write(1, b"D\0\0\0\2{}" * 10)
    sys.stdout.write("{}")
    sys.stdout.flush()


def write_to_every_pipe():
    for number in range(3, 20):
        with contextlib.suppress(OSError):
            os.write(number, b"D\0\0\0\2{}")


def write_forever():
    while True:
        os.write(2, b"x" * 65536)


def close_everything():
    os.closerange(0, 64)
    time.sleep(60)


def leave_thread():
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()


def contain_itself():
    found = []
    found.append(found)
    return found


def deep(levels):
    found = None
    for _ in range(levels):
        found = [found]
    return found


class Strange(Exception):
    def __str__(self):
        raise ValueError("no words")


def fail(error):
    raise error


def deep_call():
    return deep_call()


ACTIONS = {
    "fine": lambda: "fine",
    "crash": crash,
    "abort": os.abort,
    "loop": loop,
    "sleep": lambda: time.sleep(600),
    "hold": hold_processor,
    "memory": eat_memory,
    "exit": lambda: sys.exit(3),
    "leave": lambda: os._exit(3),
    "leave quietly": lambda: os._exit(0),
    "kill": lambda: signal.raise_signal(signal.SIGKILL),
    "print": write_to_standard_output,
    "pretend": write_to_every_pipe,
    "errors": write_forever,
    "close": close_everything,
    "thread": leave_thread,
    "itself": contain_itself,
    "deep": lambda: deep(5_000),
    "a little deep": lambda: deep(101),
    "deep enough": lambda: deep(100),
    "wide": lambda: [0] * 600_000,
    "bomb": lambda: [["x" * 1_000_000] * 1_000] * 1_000,
    "long": lambda: "x" * (3 << 20),
    "object": object,
    "strange": lambda: fail(Strange()),
    "words": lambda: fail(ValueError("page 3\x00\n\x1b[31m is \ud800 torn" + "!" * 5_000)),
    "recursion": deep_call,
    "interrupt": lambda: fail(KeyboardInterrupt()),
    "keep": lambda: KEPT.append(bytearray(os.urandom(1 << 20) * 60)),
}
KEPT = []


class Misbehaving(Parser):
    """Does what the content names."""

    name = "misbehaving"

    def parse(self, content, source):
        return ACTIONS[content.read().decode()]()
