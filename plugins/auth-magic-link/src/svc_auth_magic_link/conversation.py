"""What is said to a mail server, within bounds: smtplib alone listens for as long as a server goes on."""

from __future__ import annotations

import contextlib
import smtplib
import socket
import ssl
import threading
import time

__all__ = ["CONVERSATION_TIMEOUTS", "LARGEST_ANSWER", "Conversation"]

LARGEST_ANSWER = 64 * 1024
"""Bytes of one answer. All that are known fit into a hundredth of it."""

CONVERSATION_TIMEOUTS = 6
"""How many times the longest wait for an answer a whole conversation may take."""

_PIECE = 16 * 1024
_JOIN_SECONDS = 1.0


class Conversation(smtplib.SMTP):
    """A connection to a mail server, which is open after ``begin``. At a bound its methods raise OSError.

    Args:
        host: the server.
        port: its port.
        timeout_s: seconds for connecting, and then for each answer as a whole.
        tls: what encrypts it from the first byte on; None: nothing does until ``starttls``.

    Attributes:
        has_timed_out: whether the whole conversation took too long and was ended.
        longest_s: seconds after which it is.
    """

    def __init__(self, host: str, port: int, timeout_s: float, tls: ssl.SSLContext | None = None) -> None:
        super().__init__(timeout=timeout_s)
        self._host = host
        self._port = port
        self._answer_s = timeout_s
        self._tls = tls
        self._line: socket.socket | None = None
        self._timer: threading.Timer | None = None
        self.has_timed_out = False
        self.longest_s = timeout_s * CONVERSATION_TIMEOUTS

    def begin(self) -> None:
        """Connects, and hears the greeting."""
        code, text = self.connect(self._host, self._port)
        if code != 220:
            raise smtplib.SMTPConnectError(code, text)

    def close(self) -> None:
        """Ends the connection; a second call does nothing."""
        super().close()
        timer, self._timer = self._timer, None
        if timer is not None:
            timer.cancel()
            timer.join(_JOIN_SECONDS)
        if self._line is not None:
            self._line.close()

    def getreply(self) -> tuple[int, bytes]:
        """Hears an answer, which is whole in time."""
        if self.file is None and self.sock is not None:
            self.file = _Answers(self.sock)
        if self.file is None:
            raise smtplib.SMTPServerDisconnected("the connection has ended")
        self.file.begin(self._answer_s)
        return super().getreply()

    def send(self, s: str | bytes) -> None:  # type: ignore[override]
        """Says a command, or the mail."""
        content = s.encode(self.command_encoding) if isinstance(s, str) else s
        for start in range(0, len(content), _PIECE):
            if self.sock is not None:
                self.sock.settimeout(self._answer_s)
            super().send(content[start : start + _PIECE])

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        plain: socket.socket = super()._get_socket(host, port, timeout)  # type: ignore[misc]
        # A timeout of a socket begins anew with each byte, at the latest within TLS: so a timer ends all.
        self._line = plain.dup()
        self._timer = threading.Timer(self.longest_s, self._end)
        self._timer.name, self._timer.daemon = "svc-magic-link-end", True
        self._timer.start()
        return plain if self._tls is None else self._tls.wrap_socket(plain, server_hostname=host)

    def _end(self) -> None:
        self.has_timed_out = True
        if self._line is not None:
            with contextlib.suppress(OSError):
                self._line.shutdown(socket.SHUT_RDWR)


class _Answers:
    """Reads the lines of answers off a connection, in the place of a file."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._unread = b""
        self._room = 0
        self._ends = 0.0

    def begin(self, seconds: float) -> None:
        """A new answer begins."""
        self._room = LARGEST_ANSWER
        self._ends = time.monotonic() + seconds

    def readline(self, limit: int) -> bytes:
        """Returns a line, or so many bytes of it; less at the end of the connection."""
        while b"\n" not in self._unread and len(self._unread) < limit:
            left_s = self._ends - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("timed out")
            self._connection.settimeout(left_s)
            piece = self._connection.recv(_PIECE)
            if not piece:
                break
            self._unread += piece
        size = min(self._unread.find(b"\n") + 1 or len(self._unread), limit)
        line, self._unread = self._unread[:size], self._unread[size:]
        self._room -= size
        if self._room < 0:
            raise OSError(f"its answer is longer than {LARGEST_ANSWER // 1024} KiB")
        return line

    def close(self) -> None:
        """Nothing is open but the connection."""
