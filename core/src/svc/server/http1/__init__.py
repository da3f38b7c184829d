"""HTTP/1.1 for gunicorn and gevent: the worker class ``-k svc.server.http1.Worker``.

Connections flow in; requests as WSGI environments flow to the application, and its answers flow back, framed
as RFC 9112 wants them. What can't be understood in exactly one way is refused, and its connection closed.
"""

from __future__ import annotations

from svc.server.http1.worker import Worker

__all__ = ["Worker"]
