"""HTTP/1.1 for gunicorn and gevent: the worker class ``-k svc_worker.Worker``, for any WSGI application.

It answers as RFC 9112 wants it. What can't be understood in exactly one way is refused, and its connection
closed. An application that works for long calls ``pause``, so that others get their turn.
"""

from __future__ import annotations

from svc_worker.turns import Abandoned, pause
from svc_worker.worker import Worker

__all__ = ["Abandoned", "Worker", "pause"]
