"""Makes a database out of files: it gets its name when it is whole, or leaves nothing behind."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from svc.errors import AlreadyExists, SvcError
from svc.plugin import Database
from svc_cli import open_database

__all__ = ["restored_database"]


@contextlib.contextmanager
def restored_database(path: Path, plugin_id: str) -> Iterator[Database]:
    """Gives a new database with its first plugins, and names it ``path`` when the block ends well. Blocks.

    When it does not, nothing of it is left. Raises AlreadyExists where the name was taken meanwhile.
    """
    temporary = path.with_name(f".{path.name[:200]}.new-{secrets.token_hex(8)}")
    state = Path(f"{temporary}.d")
    try:
        with _interruptible(), _made(temporary, path, plugin_id) as database:
            yield database
        try:
            os.link(temporary, path)
        except FileExistsError as error:
            raise AlreadyExists(f"{path.name} exists already, and is not overwritten.") from error
        except OSError:
            # No hard links here: whoever gets there first has the name.
            if os.path.lexists(path):
                raise AlreadyExists(f"{path.name} exists already, and is not overwritten.") from None
            temporary.rename(path)
        _sync(path.parent)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        shutil.rmtree(state, ignore_errors=True)


def _made(temporary: Path, path: Path, plugin_id: str) -> Database:
    """Makes the database under its first name; errors speak of the name that it is to have."""
    try:
        return open_database(temporary, plugin_id, create=True)
    except SvcError as error:
        error.message = error.message.replace(temporary.name, path.name)
        raise


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Lets SIGTERM end the block as Ctrl-C does, so that what is unfinished is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
