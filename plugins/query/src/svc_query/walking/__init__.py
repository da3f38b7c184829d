"""A version of the tree as a ``Snapshot``: for queries of snapshots, versions and forks.

Files are read as they are asked for. Without indexes every document is tested, and a query looks at a
bounded number of them.
"""

from svc_query.walking.walk import walk_version

__all__ = ["walk_version"]
