"""No lock of ``threading`` is shared by greenlets and native threads: under gevent one may wait for ever."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.layering.test_layers import ROOT, modules

MAKERS = {
    "threading": {"Barrier", "BoundedSemaphore", "Condition", "Event", "Lock", "RLock", "Semaphore"},
    "_thread": {"LockType", "RLock", "allocate_lock", "lock"},
    "queue": {"LifoQueue", "PriorityQueue", "Queue", "SimpleQueue"},
}

_BACKGROUND = "threads of the background process, which gevent does not patch"
_LOOP = "greenlets of requests and hooks only"

REVIEWED = {
    "core/client/src/svc_client/transport.py": ("threading.Lock", "a client's own program"),
    "core/kernel/src/svc/database/committer.py": (
        "threading.Event",
        "one waits for it; a native thread asks again by itself",
    ),
    "core/kernel/src/svc/database/configuration_lists.py": (
        "threading.Lock",
        "greenlets of requests; threads where gevent patches nothing",
    ),
    "core/maintenance/src/svc_maintenance/verification/log_pass.py": (
        "queue.SimpleQueue queue.SimpleQueue",
        "threads of a command, or of a task's process",
    ),
    "core/kernel/src/svc/pipeline/lifetime.py": ("threading.Event", "streams wait, a signal's greenlet sets"),
    "core/kernel/src/svc/pipeline/service.py": (
        "threading.Event",
        "requests wait for seconds at most, the greenlet that opens sets",
    ),
    "core/kernel/src/svc/plugins/lifecycle.py": ("threading.RLock", _LOOP),
    "core/server/src/svc_server/background/followers.py": (
        "threading.Condition threading.Event",
        _BACKGROUND,
    ),
    "core/server/src/svc_server/background/jobs.py": ("threading.Event", _BACKGROUND),
    "core/server/src/svc_server/companion.py": ("threading.Event", "one greenlet waits, the end sets"),
    "core/server/src/svc_server/deferred.py": ("threading.Lock", _LOOP),
    "plugins/auth-file/src/svc_auth_file/source.py": (
        "threading.Lock threading.Event",
        "nobody waits for the lock; for the event one greenlet does, the end sets",
    ),
    "plugins/auth-magic-link/src/svc_auth_magic_link/timed_queue.py": (
        "threading.Condition",
        "greenlets of requests and its own one",
    ),
    "plugins/auth-self/src/svc_auth_self/limit_storage.py": ("threading.Lock", _LOOP),
    "plugins/auth-self/src/svc_auth_self/mode.py": ("threading.Lock", _LOOP),
    "plugins/auth-self/src/svc_auth_self/signing.py": ("threading.Lock", _LOOP),
    "plugins/events/src/svc_events/feed.py": (
        "threading.Lock",
        "greenlets that read; held while one of them waits for a native thread, which does not take it",
    ),
    "plugins/events-sse/src/svc_events_sse/shared_pieces.py": ("threading.Lock", _LOOP),
    "plugins/events-webhook/src/svc_events_webhook/deliveries.py": ("threading.Lock", _BACKGROUND),
    "plugins/events-webhook/src/svc_events_webhook/sending.py": (
        "threading.Lock",
        "greenlets of requests, or threads of the background process; held without a wait",
    ),
    "plugins/events-webhook/src/svc_events_webhook/sink.py": (
        "threading.Lock threading.Lock",
        _BACKGROUND,
    ),
    "plugins/events/src/svc_events/sinks/courier.py": ("threading.Lock threading.Event", _BACKGROUND),
    "plugins/events/src/svc_events/sinks/job.py": ("threading.Event", _BACKGROUND),
    "plugins/events/src/svc_events/pulses.py": (
        "threading.Lock",
        "greenlets that stream; held while one of them waits for a native thread, which does not take it",
    ),
    "plugins/events/src/svc_events/watch.py": (
        "threading.Event threading.Event threading.Lock",
        "greenlets that read, and the one that looks",
    ),
    "plugins/files/src/svc_files/client/importer.py": ("threading.Lock", "a command"),
    "plugins/files/src/svc_files/responders/patching.py": ("threading.Lock", _LOOP),
    "plugins/mirror/src/svc_mirror/client/following.py": (
        "threading.Event threading.Event",
        "in the command: its main thread waits for the thread that reads the stream",
    ),
    "plugins/sync/src/svc_sync/job.py": (
        "threading.BoundedSemaphore threading.BoundedSemaphore threading.Event threading.Lock",
        _BACKGROUND,
    ),
    "plugins/sync/src/svc_sync/rounds.py": ("threading.Event", _LOOP),
    "plugins/task-gc/src/svc_task_gc/process.py": ("threading.Event", "a process of its own"),
    "plugins/users/src/svc_users/rights_cache.py": ("threading.Lock threading.Lock", _LOOP),
    "plugins/versions/src/svc_versions/roots.py": ("threading.Lock", _LOOP),
}
"""What each module makes, and why none of it is shared by greenlets and native threads.

Who shares one takes ``svc.native_locks``, or, if it is one step of the interpreter, none.
"""


def sources() -> list[Path]:
    found = [*ROOT.glob("core/*/src/*"), *ROOT.glob("plugins/*/src/*")]
    return [path for top in found for path in modules(top) if "testing" not in path.relative_to(ROOT).parts]


def used(tree: ast.Module) -> Iterator[str]:
    """What of ``MAKERS`` a module mentions, but for annotations."""
    annotations: set[int] = set()
    for node in ast.walk(tree):
        for name in ("annotation", "returns"):
            annotation = getattr(node, name, None)
            if isinstance(annotation, ast.AST):
                annotations |= {id(inner) for inner in ast.walk(annotation)}
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    names = {module: module for module in MAKERS}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.asname or alias.name: alias.name for alias in node.names if alias.name in MAKERS}
        elif isinstance(node, ast.ImportFrom) and node.module in MAKERS:
            yield from (
                f"{node.module}.{alias.name}"
                for alias in node.names
                if alias.name == "*" or alias.name in MAKERS[node.module]
            )
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            module = names.get(node.value.id)
            if module is not None and node.attr in MAKERS[module] and id(node) not in annotations:
                # What is only mentioned may be called elsewhere, as a factory is.
                yield f"{module}.{node.attr}" if id(node) in called else f"{module}.{node.attr} (uncalled)"


def test_every_lock_that_gevent_replaces_was_reviewed() -> None:
    found: dict[str, Counter[str]] = {}
    for path in sources():
        counted = Counter(used(ast.parse(path.read_text(encoding="utf-8"), str(path))))
        if counted:
            found[str(path.relative_to(ROOT))] = counted
    assert found == {path: Counter(what.split()) for path, (what, _) in REVIEWED.items()}


def test_each_way_to_make_one_is_seen() -> None:
    text = """
import threading, threading as t
from threading import Lock as L, Thread
from queue import *
import queue
a: threading.Event
b = threading.Lock()
c = field(default_factory=t.Event)
def d(e: t.Lock) -> t.RLock: return queue.Queue()
"""
    assert sorted(used(ast.parse(text))) == [
        "queue.*",
        "queue.Queue",
        "threading.Event (uncalled)",
        "threading.Lock",
        "threading.Lock",
    ]
