"""Task types of a stranger: most of them do what no task should."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import Any

import msgspec
from svc_tasks.api import TaskType

from svc.errors import InvalidInput


class CountArguments(msgspec.Struct, forbid_unknown_fields=True):
    to: int = 10
    batch: int = 1
    pause: float = 0.0
    name: str = "count"


class Count(TaskType):
    """Appends numbers to a file of the database, a batch in each commit, and goes on where it was."""

    name = "count"
    arguments = CountArguments

    def run(self, context: Any) -> dict[str, Any]:
        args = context.args
        path = ("counted", args["name"])
        done = context.checkpoint or 0
        context.begin(args["to"], "counting", done=done)
        while done < args["to"]:
            numbers = range(done, min(done + args["batch"], args["to"]))
            with context.database.transaction(actor=context.actor) as changes:
                for number in numbers:
                    changes.put((*path, f"{number:06}"), str(number).encode())
            done += len(numbers)
            context.save_checkpoint(done)
            context.advance(len(numbers), f"at {done}")
            time.sleep(args["pause"])
        return {"counted": done}


class Together(Count):
    """The same, and several may run at once."""

    name = "together"
    exclusive = False


class Raise(TaskType):
    name = "raise"

    def run(self, context: Any) -> None:
        raise RuntimeError("the moon is full")


class Refuse(TaskType):
    name = "refuse"

    def run(self, context: Any) -> None:
        raise InvalidInput("This is not to be.")


class Exit(TaskType):
    name = "exit"

    def run(self, context: Any) -> None:
        sys.exit(3)


class Vanish(TaskType):
    """Ends its process without a word."""

    name = "vanish"

    def run(self, context: Any) -> None:
        os._exit(7)


class Crash(TaskType):
    name = "crash"

    def run(self, context: Any) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)


class Hang(TaskType):
    """Holds the interpreter, and listens to nobody."""

    name = "hang"

    def run(self, context: Any) -> None:
        context.begin(1)
        while True:
            pass


class Stubborn(TaskType):
    """Lives, and does not end when it is told to."""

    name = "stubborn"

    def run(self, context: Any) -> None:
        while True:
            with contextlib.suppress(BaseException):
                context.advance(0)
            time.sleep(0.01)


class Leak(TaskType):
    name = "leak"

    def run(self, context: Any) -> None:
        held = []
        while True:
            held.append(bytearray(16 << 20))


class Babble(TaskType):
    """Prints, logs, and writes to what it takes for the pipe."""

    name = "babble"

    def run(self, context: Any) -> dict[str, Any]:
        print("hello")
        os.write(1, b"not for you\n")
        context.logger.warning("said to the log")
        return {"said": True}


class Endless(TaskType):
    """Goes on for as long as it may, and has no checkpoint."""

    name = "endless"

    def run(self, context: Any) -> None:
        context.begin(0)
        while True:
            context.advance(1)
            time.sleep(0.01)


class Huge(TaskType):
    name = "huge"

    def run(self, context: Any) -> dict[str, Any]:
        return {"text": "x" * 100_000}


class Odd(TaskType):
    name = "odd"

    def run(self, context: Any) -> Any:
        return {"thing": object()}


class BadCheck(TaskType):
    """Fails where it should check its arguments."""

    name = "bad-check"

    def normalize(self, args: Any, configuration: Any) -> dict[str, Any]:
        if args.get("how") == "exit":
            sys.exit(1)
        if args.get("how") == "object":
            return {"a": object()}
        if args.get("how") == "list":
            return ["a"]  # type: ignore[return-value]
        if args.get("how") == "huge":
            return {"a": "x" * 20_000}
        raise KeyError("nothing")

    def run(self, context: Any) -> None:
        return None


class PickyArguments(msgspec.Struct, forbid_unknown_fields=True):
    file: str


class Picky(TaskType):
    """Wants a file that is there when it is asked for."""

    name = "picky"
    arguments = PickyArguments

    def check(self, args: Any, database: Any) -> None:
        if args["file"] == "broken":
            raise KeyError("nothing")
        if database.at().get((args["file"],)) is None:
            raise InvalidInput("There is no such file.", field="file")

    def run(self, context: Any) -> None:
        return None


class Tell(TaskType):
    """Says what it was handed."""

    name = "tell"

    def normalize(self, args: Any, configuration: Any) -> dict[str, Any]:
        return dict(args)

    def run(self, context: Any) -> dict[str, Any]:
        return {
            "password": context.configuration.password.reveal(),
            "niceness": os.getpriority(os.PRIO_PROCESS, 0),
            "actor": context.actor,
            "plugins": os.environ.get("SVC_PLUGINS"),
            "args": dict(context.args),
        }


class Hidden(TaskType):
    name = "hidden"
    trigger = False

    def run(self, context: Any) -> None:
        return None


TYPES = (
    *(Count, Together, Raise, Refuse, Exit, Vanish, Crash, Hang, Stubborn, Leak, Babble, Endless, Huge, Odd),
    *(BadCheck, Picky, Tell, Hidden),
)
