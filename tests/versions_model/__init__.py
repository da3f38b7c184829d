"""All operations on versions against a model that keeps whole trees in memory.

Random operations flow in, restarts among them; a database and a model take each, and must agree on every
answer, on every version that ever was, and on what another database gets by exports and patches.
"""

from __future__ import annotations
