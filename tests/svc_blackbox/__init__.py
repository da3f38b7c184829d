"""What the black-box tests stand on: a real server, an exact HTTP client, raw sockets, directory trees.

Nothing of svc is imported: the program is started as its users start it, and spoken to over its port.
A database path flows in; answers, acknowledged contents and exit codes flow out.
"""

from __future__ import annotations
