"""The crash laboratory: processes killed, logs torn, disks that lie, fill up or fail.

Random work flows in, with a journal of what was acknowledged; after every crash the database must open by
itself, hold all of it and nothing half done, and verify clean. ``SVC_TEST_CRASH_SCALE`` lengthens the runs.
"""

from __future__ import annotations
