"""What a child process gives up before it reads a file.

All of it works without being root, and each part by itself: a kernel that lacks one leaves the others.
Nothing of it can be taken back by the process. The page on parsers says what holds where.
"""

from __future__ import annotations

import ctypes
import os
import resource
import signal
import struct
from collections.abc import Iterable
from pathlib import Path

from svc_query.parsing.syscalls import filter_program

__all__ = ["apply_limits", "die_with_parent", "restrict"]

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_MODE_FILTER = 2
_CAPABILITY_VERSION_3 = 0x20080522
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_SYS_LANDLOCK_CREATE_RULESET = 444
_SYS_LANDLOCK_ADD_RULE = 445
_SYS_LANDLOCK_RESTRICT_SELF = 446
_READ_FILE = 1 << 2
_READ_DIRECTORY = 1 << 3

_READABLE = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/localtime",
    "/etc/mime.types",
    "/dev/null",
    "/dev/urandom",
    "/dev/zero",
)
"""What a library reads that is loaded late, beside the folders that Python imports from."""


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Makes the process end when its parent does.

    Linux sends the signal already when the thread that started the process ends, so a handler looks whether
    the parent itself has gone. Where a parser holds the processor outside of Python, the alarm of its parse
    ends the process instead.
    """

    def look(_number: int, _frame: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGHUP, look)
    _libc().prctl(_PR_SET_PDEATHSIG, int(signal.SIGHUP), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def apply_limits(memory: int) -> None:
    """Limits what the process may use."""
    for kind, limit in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_AS, memory),
    ):
        _, hard = resource.getrlimit(kind)
        allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
        resource.setrlimit(kind, (allowed, allowed))


def restrict(readable: Iterable[str]) -> dict[str, bool]:
    """Gives up privileges, files, the network and other processes; returns which of it the kernel granted.

    ``readable`` may be read still, beside the system's libraries.
    """
    libc = _libc()
    granted = {"no_new_privileges": libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0}
    granted["capabilities"] = _drop_capabilities(libc)
    granted["files"] = _restrict_files(libc, (*_READABLE, *readable))
    granted["calls"] = _restrict_calls(libc)
    return granted


def _drop_capabilities(libc: ctypes.CDLL) -> bool:
    number = _SYS_CAPSET.get(os.uname().machine)
    if number is None:
        return False
    header = struct.pack("=Ii", _CAPABILITY_VERSION_3, 0)
    return bool(libc.syscall(number, header, bytes(24)) == 0)


def _restrict_files(libc: ctypes.CDLL, readable: Iterable[str]) -> bool:
    """Landlock: nothing is written, and nothing read but what is named."""
    version = libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), 1)
    if version < 1:
        return False
    files = (1 << (13 + (version >= 2) + (version >= 3))) - 1
    if version >= 5:
        files |= 1 << 15
    network = 0b11 if version >= 4 else 0
    scopes = 0b11 if version >= 6 else 0
    attributes = struct.pack("=QQQ", files, network, scopes)[: 8 + 8 * (version >= 4) + 8 * (version >= 6)]
    rules = libc.syscall(_SYS_LANDLOCK_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    if rules < 0:
        return False
    for name in dict.fromkeys(readable):
        _allow(libc, rules, name)
    done = libc.syscall(_SYS_LANDLOCK_RESTRICT_SELF, rules, 0) == 0
    os.close(rules)
    return bool(done)


def _allow(libc: ctypes.CDLL, rules: int, name: str) -> None:
    try:
        target = os.open(name, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        access = _READ_FILE | (_READ_DIRECTORY if Path(name).is_dir() else 0)
        libc.syscall(_SYS_LANDLOCK_ADD_RULE, rules, 1, struct.pack("=Qi", access, target), 0)
    finally:
        os.close(target)


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def _restrict_calls(libc: ctypes.CDLL) -> bool:
    """Seccomp: no sockets, no new programs or processes, no signals to others."""
    instructions = filter_program(os.uname().machine, os.getpid())
    if instructions is None:
        return False
    buffer = ctypes.create_string_buffer(instructions, len(instructions))
    program = _Program(len(instructions) // 8, ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) == 0)
