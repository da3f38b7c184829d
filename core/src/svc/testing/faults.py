"""Faults on purpose: a call that fails, writes half, or is the last thing its process does.

A ``Fault`` names a function and which of its calls goes wrong. In this process ``inject`` sets it for a
while; in another one, ``python -m svc.testing.faults os.fdatasync:3:kill -- arguments`` runs ``svc``
with it (``-- start -D x.svcdb``).
"""

from __future__ import annotations

import errno
import functools
import importlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Fault", "inject", "main"]

KILL = "kill"
SHORT = "short"


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and when.

    Attributes:
        target: dotted name of the function, ``os.fdatasync`` or ``module.Class.method``.
        call: which call goes wrong, from 1; those before it work.
        action: ``kill`` ends the process at once by SIGKILL, before the call; ``short`` cuts the bytes
            argument of a write in half and then kills the process; a name of ``errno`` such as ``ENOSPC``
            raises that.
        repeat: whether all later calls go wrong too (of an errno).
    """

    target: str
    call: int
    action: str
    repeat: bool = False

    def __post_init__(self) -> None:
        if self.action not in (KILL, SHORT) and not hasattr(errno, self.action):
            raise ValueError(f"{self.action!r} is not kill, short or a name of errno.")
        if self.call < 1:
            raise ValueError("Calls are counted from 1.")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Reads ``target:call:action``; a plus behind the call (``3+``) repeats the fault."""
        target, call, action = text.split(":")
        return cls(target, int(call.removesuffix("+")), action, repeat=call.endswith("+"))


@contextmanager
def inject(*faults: Fault) -> Iterator[None]:
    """Sets faults in this process until the block ends. Calls are counted over all threads."""
    with ExitStack() as stack:
        for fault in faults:
            owner, name = _resolve(fault.target)
            original = getattr(owner, name)
            setattr(owner, name, _faulty(fault, original))
            stack.callback(setattr, owner, name, original)
        yield


def _resolve(target: str) -> tuple[Any, str]:
    """The object that holds the function, and the function's name in it."""
    parts = target.split(".")
    for depth in range(len(parts) - 1, 0, -1):
        try:
            owner: Any = importlib.import_module(".".join(parts[:depth]))
        except ModuleNotFoundError:
            continue
        for part in parts[depth:-1]:
            owner = getattr(owner, part)
        return owner, parts[-1]
    raise ValueError(f"{target!r} names no function.")


def _faulty(fault: Fault, original: Callable[..., Any]) -> Callable[..., Any]:
    lock = threading.Lock()
    calls = 0

    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        with lock:
            calls += 1
            number = calls
        if number == fault.call or (fault.repeat and number > fault.call):
            return _go_wrong(fault, original, arguments, options)
        return original(*arguments, **options)

    return call


def _go_wrong(
    fault: Fault, original: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    if fault.action == SHORT:
        original(*(_halved(argument) for argument in arguments), **options)
    if fault.action in (KILL, SHORT):
        os.kill(os.getpid(), signal.SIGKILL)
    number = getattr(errno, fault.action)
    raise OSError(number, os.strerror(number))


def _halved(argument: Any) -> Any:
    if isinstance(argument, (bytes, bytearray, memoryview)):
        return bytes(argument)[: len(argument) // 2]
    if isinstance(argument, list) and all(
        isinstance(item, (bytes, bytearray, memoryview)) for item in argument
    ):
        return [_halved(b"".join(argument))]
    return argument


def main(arguments: list[str]) -> None:
    """Runs ``svc`` with faults, and exits as it does: ``target:call:action ... -- svc arguments``."""
    split = arguments.index("--")
    faults = [Fault.parse(text) for text in arguments[:split]]
    with inject(*faults):
        from svc.cli import main as run

        run(arguments[split + 1 :])


if __name__ == "__main__":
    main(sys.argv[1:])
