"""The background process: one for each database, it keeps views current and runs the jobs of plugins.

It is elected by a lock on the log, and another candidate takes over when it dies, however it dies.
"""

from __future__ import annotations
