"""How a node with data of its own becomes a member: nothing of it is lost, and the cluster hears of all.

It copies what a member holds beside its own, decides for each of its files and names what becomes of it
(``svc_sync.joining.bring``), and takes over the outcome in one transaction. Until then it is what it was, and
if it is interrupted it begins anew. Users, keys and settings are the cluster's from then on.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from svc.errors import Conflict
from svc.plugin import Database, Entry, Hash, Path, attempt
from svc_sync.clock import vt_of
from svc_sync.cluster import Member
from svc_sync.exchange.commits import Snapshot, read_snapshot
from svc_sync.exchange.links import Link
from svc_sync.exchange.marks import only_return
from svc_sync.exchange.parts import leaves_below
from svc_sync.exchange.reading import VersionTree, leaf_of
from svc_sync.exchange.records import NodeRecord, find_node
from svc_sync.exchange.seen_cluster import SeenCluster, pages_of, see_cluster
from svc_sync.exchange.taking_over import TakeOver
from svc_sync.exchange.trees import forget_partial_trees
from svc_sync.joining import bring
from svc_sync.registers import RESTATED_VT, Dot, Register
from svc_sync.scopes import is_of_user
from svc_sync.tree import FULL, value_of
from svc_sync.values import Directory, Value

__all__ = ["bring_own"]


def bring_own(database: Database, link: Link) -> NodeRecord:
    """Makes a node that was taken in a member, with all that it holds. Blocks; commits.

    Args:
        database: of this node.
        link: to the member that has let it in.

    Raises:
        NotFound: the member keeps the version no more, or a content was gone before it travelled.
        InvalidInput: the member has sent what no node sends.
        Conflict: another member has let this node in meanwhile.
        ServiceUnavailable: another thread or process is at it.
    """
    node = find_node(database.system())
    assert node is not None
    assert node.copying is not None
    with only_return(database):
        return _bring_own(database, link, node, node.copying.root)


def _bring_own(database: Database, link: Link, node: NodeRecord, root: Hash) -> NodeRecord:
    forget_partial_trees(database)
    before = read_snapshot(database)
    member = Member(node.writer, node.node_id, before.scope.globs)
    own = VersionTree(database.at())
    seen, trees = see_cluster(database, link, own, member, root, before.state.cluster, node.cluster_id)
    joined = replace(node, copying=None)

    def decide(snapshot: Snapshot, since: Snapshot | None) -> Iterator[dict[Path, Register | None]]:
        if snapshot.node != node:
            raise Conflict("Another member has let this node in meanwhile.")
        return _brought(snapshot, since, seen, node.writer)

    attempt(TakeOver(database, seen, trees, root, joined, decide), "This node")
    trees.let_go()
    return joined


def _brought(
    snapshot: Snapshot, since: Snapshot | None, seen: SeenCluster, writer: int
) -> Iterator[dict[Path, Register | None]]:
    """Yields the registers of what is here and not in the cluster, some at a time; see ``Decide``."""
    theirs = seen.registers()
    latest = snapshot.state.vt
    for page in pages_of(_own_values(snapshot, seen) if since is None else _changed(snapshot, since, seen)):
        made = {
            path: bring(
                theirs.get(path),
                seen.shown(path, theirs),
                value,
                Dot(_time_of(value, latest), writer),
                blocked=is_of_user(path) and _is_blocked(seen, path),
            )
            for path, value in page
        }
        yield {path: register for path, register in made.items() if register or since is not None}


def _own_values(snapshot: Snapshot, seen: SeenCluster) -> Iterator[tuple[Path, Value]]:
    leaves = leaves_below(snapshot.tree.version, seen.scope, None)
    files = ((path, leaf) for path, leaf in leaves if seen.scope.takes(path))
    return chain(files, snapshot.references.rows(None) if seen.scope.is_whole else ())


def _changed(snapshot: Snapshot, since: Snapshot, seen: SeenCluster) -> Iterator[tuple[Path, Value]]:
    """Yields what stands where something else stood; all names, since there are few."""
    for change in since.tree.version.diff(snapshot.tree.version):
        if seen.scope.takes(change.path):
            yield change.path, value_of(leaf_of(change.after))
    if seen.scope.is_whole:
        names = dict(snapshot.references.rows(None))
        yield from ((path, names.get(path)) for path in {**dict(since.references.rows(None)), **names})


def _time_of(value: Value, latest: int) -> int:
    """When something was written here, as a virtual time that no other member can know more of already."""
    if not isinstance(value, Entry | Directory):
        return latest
    time_ms = value.updated_ms if isinstance(value, Entry) else value.own_ms
    return min(max(vt_of(time_ms), RESTATED_VT) + 1, latest)


def _is_blocked(seen: SeenCluster, path: Path) -> bool:
    """Whether a file or link stands above a path in the cluster."""
    above = (seen.tree.leaf(path[:depth]) for depth in range(1, len(path)))
    return any(leaf is not FULL and isinstance(leaf, Entry) for leaf in above)
