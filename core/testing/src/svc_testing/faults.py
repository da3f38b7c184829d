"""Faults on purpose: a call that fails, writes half, or is the last thing its process does.

A ``Fault`` names a function, or a step of the write path, and which of its calls goes wrong. In this
process ``inject`` sets it for a while; in another one, ``python -m svc_testing.faults os.fdatasync:3:kill
-- arguments`` runs ``svc`` with it (``-- start -D x.svcdb``). Production code knows nothing of all this.
"""

from __future__ import annotations

import errno
import functools
import importlib
import inspect
import os
import random
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["STEPS", "Fault", "inject", "main"]

KILL = "kill"
KILL_AFTER = "kill-after"
SHORT = "short"

_process_id = os.getpid
"""The call itself, which no fault replaces."""

_Condition = Callable[[tuple[Any, ...]], bool]


def _announces(arguments: tuple[Any, ...]) -> bool:
    _, head = arguments
    return bool(head.pending_from) and not head.latched


def _ends_what_was_announced(arguments: tuple[Any, ...]) -> bool:
    state, head = arguments
    return not head.pending_from and bool(state.head().pending_from)


def _appends_a_commit(arguments: tuple[Any, ...]) -> bool:
    from svc.hashing import ObjectKind
    from svc.log.framing import RECORD_HEADER_SIZE, decode_header

    _, records = arguments
    header = decode_header(records[-1]) if records and len(records[-1]) >= RECORD_HEADER_SIZE else None
    return header is not None and header.kind is ObjectKind.COMMIT


def _indexes_a_commit(arguments: tuple[Any, ...]) -> bool:
    return bool(arguments[2])


_STEPS: dict[str, tuple[str, _Condition | None]] = {
    "uploads.append": ("svc.objects.large_content.append_pieces", None),
    "commit.announce": ("svc.database.state.SharedState.publish", _announces),
    "commit.append": ("svc.log.Log.append", _appends_a_commit),
    "commit.sync": ("svc.log.LocalFileStorage.sync", None),
    "commit.index": ("svc.objects.key_index.KeyIndex.write", _indexes_a_commit),
    "commit.publish": ("svc.database.state.SharedState.publish", _ends_what_was_announced),
    "commit.answer": ("svc.database.committer.Committer._hand_over", None),
}

STEPS = tuple(_STEPS)
"""The steps of the write path, in order: names that a fault's target may be."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What goes wrong, and when.

    Attributes:
        target: dotted name of the function, ``os.fdatasync`` or ``module.Class.method``, or one of
            ``STEPS``, whose calls are counted only where they take that step.
        call: which call of a process goes wrong, from 1; those before it work. A fork counts anew.
        action: ``kill`` ends the process at once by SIGKILL, before the call; ``kill-after`` when the call
            has returned, before its caller goes on; ``short`` cuts the bytes argument of a write in half
            and then kills the process; a name of ``errno`` such as ``ENOSPC`` raises that.
        repeat: whether all later calls go wrong too (of an errno).
        until: where it is more than ``call``, each process draws its number between the two.
    """

    target: str
    call: int
    action: str
    repeat: bool = False
    until: int = 0

    def __post_init__(self) -> None:
        if self.action not in (KILL, KILL_AFTER, SHORT) and not hasattr(errno, self.action):
            raise ValueError(f"{self.action!r} is not kill, kill-after, short or a name of errno.")
        if self.call < 1:
            raise ValueError("Calls are counted from 1.")

    @classmethod
    def parse(cls, text: str) -> Fault:
        """Reads ``target:call:action``.

        A plus behind the call (``3+``) repeats the fault; two numbers (``3-90``) let each process draw.
        """
        target, call, action = text.split(":")
        first, _, until = call.removesuffix("+").partition("-")
        return cls(target, int(first), action, repeat=call.endswith("+"), until=int(until or 0))


@contextmanager
def inject(*faults: Fault) -> Iterator[None]:
    """Sets faults in this process until the block ends. Calls are counted over all threads."""
    with ExitStack() as stack:
        for fault in faults:
            target, condition = _STEPS.get(fault.target, (fault.target, None))
            owner, name = _resolve(target)
            stored = inspect.getattr_static(owner, name)
            replacement: Any = _faulty(fault, getattr(owner, name), condition)
            setattr(owner, name, staticmethod(replacement) if _is_static(owner, stored) else replacement)
            stack.callback(setattr, owner, name, stored)
        yield


def _is_static(owner: Any, stored: Any) -> bool:
    """Whether a function of a class is called without an instance, as a built-in one in it is."""
    return isinstance(owner, type) and (isinstance(stored, staticmethod) or inspect.isbuiltin(stored))


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


def _faulty(
    fault: Fault, original: Callable[..., Any], condition: _Condition | None = None
) -> Callable[..., Any]:
    lock = threading.Lock()
    process = calls = chosen = 0

    @functools.wraps(original)
    def call(*arguments: Any, **options: Any) -> Any:
        nonlocal process, calls, chosen
        if condition is not None and not condition(arguments):
            return original(*arguments, **options)
        current = _process_id()
        with lock:
            if process != current:
                process, calls = current, 0
                chosen = random.randint(fault.call, max(fault.call, fault.until))
            calls += 1
            wrong = calls == chosen or (fault.repeat and calls > chosen)
        if wrong:
            return _go_wrong(fault, original, arguments, options)
        return original(*arguments, **options)

    return call


def _go_wrong(
    fault: Fault, original: Callable[..., Any], arguments: tuple[Any, ...], options: dict[str, Any]
) -> Any:
    if fault.action == SHORT:
        original(*(_halved(argument) for argument in arguments), **options)
    if fault.action == KILL_AFTER:
        original(*arguments, **options)
    if fault.action in (KILL, KILL_AFTER, SHORT):
        os.write(2, f"svc_testing.faults: killed by {fault.target}:{fault.action}\n".encode())
        os.kill(_process_id(), signal.SIGKILL)
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
        from svc_cli import main as run

        run(arguments[split + 1 :])


if __name__ == "__main__":
    main(sys.argv[1:])
