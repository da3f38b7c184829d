"""The background process: one for each database, it does what no request should wait for.

Commits flow in from the feed; views that are current, and the periodic jobs of plugins, flow out. It is
elected by a lock on the log, and another candidate takes over when it dies, however it dies.
"""

from __future__ import annotations
