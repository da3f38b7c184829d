"""What a worker tells the process that started the server: a few bytes of memory that forks share."""

from __future__ import annotations

import json
import mmap
import os
import struct

from svc.errors import SvcError

__all__ = ["BootReport"]

_SIZE = 4096
_LENGTH = struct.Struct("<I")


class BootReport:
    """The first error that keeps workers from serving, and which may say that the server is ready."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, _SIZE)
        self._token_read, self._token_write = os.pipe()
        os.set_blocking(self._token_read, False)
        os.write(self._token_write, b"1")

    def claim_announcement(self) -> bool:
        """Whether the caller is the one that announces the server; True once for all processes."""
        try:
            return os.read(self._token_read, 1) == b"1"
        except BlockingIOError:
            return False

    def fail(self, error: BaseException) -> None:
        """Keeps an error for the master, unless there is one already."""
        if self.error() is not None:
            return
        message = error.message if isinstance(error, SvcError) else f"{type(error).__name__}: {error}"
        code = error.exit_code if isinstance(error, SvcError) else 1
        text = json.dumps([message[:1500], code]).encode("ascii")[: _SIZE - _LENGTH.size]
        self._memory[_LENGTH.size : _LENGTH.size + len(text)] = text
        self._memory[: _LENGTH.size] = _LENGTH.pack(len(text))

    def error(self) -> tuple[str, int] | None:
        """The message and the exit code of the error, or None."""
        (length,) = _LENGTH.unpack(self._memory[: _LENGTH.size])
        if not length:
            return None
        message, code = json.loads(self._memory[_LENGTH.size : _LENGTH.size + length])
        return str(message), int(code)
