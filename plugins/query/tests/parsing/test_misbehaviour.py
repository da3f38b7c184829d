"""Whatever a parser does costs the file at hand: a sentence says what it was, and the next file is read."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from broken_parsers import Broken
from misbehaving_parsers import Echo, Misbehaving, Reach
from svc_query.configuration import QueryConfiguration
from svc_query.parsing import ParseResult, ParserPool
from svc_query.parsing.process import ChildProcess
from svc_query.parsing.results import MAXIMUM_FAILURE

CONFIGURATION = QueryConfiguration(parse_seconds=1.0, parse_memory=200 << 20, parse_output=2 << 20)
FAILURES = {
    "crash": "The parser misbehaving crashed (SIGSEGV).",
    "abort": "The parser misbehaving crashed (SIGABRT).",
    "loop": "The parser misbehaving took longer than 1 seconds.",
    "hold": "The parser misbehaving took longer than 1 seconds.",
    "memory": "The parser misbehaving needs more memory for it than 200 MiB.",
    "exit": "The parser misbehaving wanted to end its process.",
    "interrupt": "The parser misbehaving wanted to end its process.",
    "leave": "The parser misbehaving ended its process with code 3.",
    "leave quietly": "The parser misbehaving ended its process.",
    "kill": "The parser misbehaving was killed, perhaps for want of memory.",
    "errors": "The parser misbehaving wrote more to its standard error than it may.",
    "close": "The parser misbehaving was killed, perhaps for want of memory.",
    "itself": "The parser misbehaving can't read it: it nests too deeply.",
    "deep": "The parser misbehaving can't read it: it nests too deeply.",
    "a little deep": "The parser misbehaving can't read it: It nests more than 100 levels deep.",
    "recursion": "The parser misbehaving can't read it: it nests too deeply.",
    "long": "The parser misbehaving can't read it: What is in it takes more than 2,097,152 bytes.",
    "object": "The parser misbehaving can't read it: TypeError: it gave a value of the type object, which"
    " JSON does not have.",
    "strange": "The parser misbehaving can't read it: Strange.",
}


@pytest.fixture(scope="module")
def one_pool() -> Iterator[ParserPool]:
    """One for all misbehaviour: each costs the start of one child."""
    pool = ParserPool(CONFIGURATION)
    yield pool
    pool.close()
    assert pool.children == ()


@pytest.fixture(scope="module")
def patient_pool() -> Iterator[ParserPool]:
    """One for what is not about time: a machine with other work needs more than a second for it."""
    pool = ParserPool(msgspec.structs.replace(CONFIGURATION, parse_seconds=60.0))
    yield pool
    pool.close()
    assert pool.children == ()


@pytest.mark.parametrize("action", FAILURES)
def test_it_costs_one_parse_and_is_told(
    one_pool: ParserPool, patient_pool: ParserPool, source, action: str
) -> None:
    is_late = "took longer" in FAILURES[action]
    pool = one_pool if is_late else patient_pool
    told = ParseResult(failure=FAILURES[action], late=is_late)
    assert pool.parse(Misbehaving(), action.encode(), source) == told
    assert pool.parse(Misbehaving(), b"fine", source) == ParseResult("fine")


def test_a_document_that_grows_beyond_the_memory_when_it_is_encoded_is_told(patient_pool, source) -> None:
    pool = patient_pool
    failure = pool.parse(Misbehaving(), b"bomb", source).failure
    assert failure in (FAILURES["memory"], FAILURES["crash"])  # The encoder may not survive the want of it.
    assert pool.parse(Misbehaving(), b"fine", source) == ParseResult("fine")


@pytest.mark.parametrize("action", ["print", "thread"])
def test_it_does_no_harm(pool, source, action: str) -> None:
    assert pool.parse(Misbehaving(), action.encode(), source) == ParseResult(None)
    assert pool.parse(Misbehaving(), b"fine", source) == ParseResult("fine")


def test_what_writes_to_the_pipe_of_the_pool_itself_is_not_believed_twice(pool, source) -> None:
    assert pool.parse(Misbehaving(), b"pretend", source) == ParseResult(
        failure="The parser misbehaving broke the protocol."
    )
    assert pool.parse(Misbehaving(), b"fine", source) == ParseResult("fine")


def test_a_message_is_one_short_line(pool, source) -> None:
    failure = pool.parse(Misbehaving(), b"words", source).failure
    assert failure.startswith("The parser misbehaving can't read it: page 3 [31m is torn!!!")
    assert len(failure) <= MAXIMUM_FAILURE
    assert failure.isprintable()


def test_as_deep_as_allowed_is_a_document(pool, source) -> None:
    document = pool.parse(Misbehaving(), b"deep enough", source).document
    for _ in range(100):
        (document,) = document
    assert document is None


def test_a_parser_that_can_not_be_imported_says_why(pool, source) -> None:
    assert pool.parse(Broken(), b"", source) == ParseResult(
        failure="The parser Broken can't be loaded: ImportError: the library of this parser is not there."
    )
    assert pool.parse(Echo(), b"", source).failure is None


def granted_by_the_kernel(pool: ParserPool) -> dict[str, bool]:
    child = ChildProcess(pool._settings)
    try:
        return child.granted
    finally:
        child.end()


def test_a_parser_reaches_no_network_no_process_and_no_file(pool, source, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("of the database")
    granted = granted_by_the_kernel(pool)
    assert granted["no_new_privileges"]
    document = pool.parse(Reach(), f"{secret}\n{os.getpid()}".encode(), source).document
    if not granted["calls"]:
        pytest.skip("this kernel filters no system calls")
    for what in (
        "socket",
        "socketpair",
        "program",
        "fork",
        "replace",
        "signal",
        "limits of another",
    ):
        assert document[what] == "PermissionError", what
    if not granted["files"]:
        pytest.skip("this kernel has no Landlock")
    for what in ("read", "list", "write", "make", "remove", "memory of the pool"):
        assert document[what] == "PermissionError", what
    assert secret.read_text() == "of the database"


PARENT = """
    import sys, threading, time
    sys.path[:] = {path!r}
    {patch}
    from misbehaving_parsers import Echo, Misbehaving
    from svc_query.api import ParserInput
    from svc_query.configuration import QueryConfiguration
    from svc_query.parsing import ParserPool

    pool = ParserPool(QueryConfiguration(parse_seconds=3.0))
    source = ParserInput("a", None, 1)
    {body}
"""
SERVE = """
    print(pool.parse(Echo(), b"", source).document["pid"], flush=True)
    pool.parse(Misbehaving(), {action!r}, source)
    time.sleep(600)
"""


def start(body: str, patch: str = "", folder: Path | None = None) -> subprocess.Popen[str]:
    code = textwrap.dedent(PARENT).format(
        path=[item for item in sys.path if item], patch=patch, body=textwrap.dedent(body).strip()
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, cwd=folder)


@pytest.mark.parametrize("action", [b"fine", b"sleep", b"loop", b"hold"])
def test_children_die_with_a_parent_that_was_killed(action: bytes) -> None:
    with start(SERVE.format(action=action)) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        deadline = time.monotonic() + 60
        while Path(f"/proc/{child}").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not Path(f"/proc/{child}").exists()


AMONG_DATA = """
    import json, os
    from misbehaving_parsers import Reach
    sys.path.insert(0, os.getcwd())
    result = pool.parse(Reach(), os.path.join(os.getcwd(), "data.svcdb\\n1").encode(), source)
    print(json.dumps(result.document))
    pool.close()
"""


def test_a_server_that_was_started_among_its_data_does_not_show_them(
    pool: ParserPool, tmp_path: Path
) -> None:
    if not granted_by_the_kernel(pool)["files"]:
        pytest.skip("this kernel has no Landlock")
    (tmp_path / "data.svcdb").write_text("of the database")
    for importable, outcome in ((False, "PermissionError"), (True, "done")):
        if importable:
            (tmp_path / "module.py").write_text("")
        with start(AMONG_DATA, folder=tmp_path) as parent:
            output, _ = parent.communicate(timeout=100)
        document = json.loads(output)
        assert (document["read"], document["write"]) == (outcome, "PermissionError")


IN_GREENLETS = """
    import gevent
    from svc_server.executors import executor_of_process
    from svc.executor import use_executor
    use_executor(executor_of_process())
    beats = []
    def beat():
        while True:
            beats.append(1)
            gevent.sleep(0.01)
    beating = gevent.spawn(beat)
    actions = b"fine", b"sleep", b"crash", b"fine"
    work = [gevent.spawn(pool.parse, Misbehaving(), action, source) for action in actions]
    gevent.joinall(work, timeout=60)
    print([item.value.failure or item.value.document for item in work])
    print(len(beats) > 20)
    pool.close()
    print(pool.children)
"""


def test_greenlets_go_on_while_files_are_parsed() -> None:
    with start(IN_GREENLETS, "import gevent.monkey; gevent.monkey.patch_all()") as parent:
        output, _ = parent.communicate(timeout=100)
    assert output.splitlines() == [
        str(["fine", "The parser misbehaving took longer than 3 seconds.", FAILURES["crash"], "fine"]),
        "True",
        "()",
    ]
    assert parent.returncode == 0
