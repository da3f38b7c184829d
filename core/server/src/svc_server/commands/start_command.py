"""``svc start``."""

from __future__ import annotations

import gc
import os
import resource
from collections.abc import Callable

from svc_server.commands.server_command import ServerCommand
from svc_server.options import ServerSettings

__all__ = ["start"]

_OF_GUNICORN = ("WEB_CONCURRENCY", "FORWARDED_ALLOW_IPS")
"""Variables that gunicorn takes its defaults from when it is imported; no option of ours is called so."""


def _start(resolve: Callable[[], ServerSettings]) -> int:
    """Serves a database over HTTP until it is stopped (SIGTERM, Ctrl-C).

    Prints one line on standard output when it answers; the log goes to standard error. Every option can
    also be given as an environment variable SVC_<OPTION> or as a key of the file that --config names; the
    command line comes first, then the environment, then the file.
    """
    settings = resolve()
    # Nothing of what is imported is garbage; looking for it would take a sixth of the time.
    gc.disable()
    # Imported here: of no use to any other command. The check runs while gunicorn and gevent are imported.
    from svc_server.listening import make_tls_context
    from svc_server.preflight import Preflight

    for name in _OF_GUNICORN:
        os.environ.pop(name, None)
    _forbid_core_dumps()
    make_tls_context(settings["tls_cert"], settings["tls_key"])
    preflight = Preflight(settings)
    from svc_server.start import serve

    return serve(settings, resolve, preflight)


def _forbid_core_dumps() -> None:
    """No process of the server leaves its memory on the disk when it crashes: keys and tokens are in it.

    Whoever looks for the cause of a crash allows it by ``prlimit --core`` for the process at hand.
    """
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


start = ServerCommand("start", _start)
