"""Rules with a fault: each must break the law within some number of schedules.

A mutant names a function, what stands in its text, and what stands there instead.
"""

from __future__ import annotations

import importlib
import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

__all__ = ["MUTANTS", "Mutant", "in_force"]


class Mutant(NamedTuple):
    """A fault.

    ``schedules``: within how many it must be found; ``stress``: what happens more often in them;
    ``found_by``: the number of one that has found it, which is tried first.
    """

    name: str
    where: str
    changes: tuple[tuple[str, str], ...]
    schedules: int = 400
    stress: tuple[str, ...] = ()
    found_by: int = 0


@contextmanager
def in_force(mutant: Mutant) -> Iterator[None]:
    """Gives the function the faulty code, wherever it is used."""
    module_name, _, qualified = mutant.where.partition(":")
    module = importlib.import_module(module_name)
    *holders, name = qualified.split(".")
    holder = module
    for one in holders:
        holder = getattr(holder, one)
    function = inspect.getattr_static(holder, name)
    text = textwrap.dedent(inspect.getsource(function))
    for old, new in mutant.changes:
        assert text.count(old) == 1, f"{mutant.where} has not once: {old}"
        text = text.replace(old, new)
    space = dict(vars(module))
    exec(compile(f"from __future__ import annotations\n{text}", mutant.where, "exec"), space)
    # Also where a table holds the function, and not its name.
    right, function.__code__ = function.__code__, space[name].__code__
    try:
        yield
    finally:
        function.__code__ = right


_NODE = "sync_model.node:Node"
_CRASH_BEFORE = ("    self.stamp()\n    changed", "    self.stamp()\n    old = self.backup()\n    changed")

MUTANTS = (
    Mutant(
        "a stable file that is displaced has no register again",
        "svc_sync.tree:_put_winner",
        (("restated[above] = restate(there)", "pass"),),
    ),
    Mutant(
        "what was stated again does not yield to a deletion",
        "svc_sync.registers:_was_deleted",
        (("if dot.vt > RESTATED_VT or", "if True or"),),
        schedules=5_000,
        found_by=3120,
    ),
    Mutant(
        "the registers of paths above are not sent along",
        "svc_sync.pages:select_page",
        (("if holder is not None and", "if False and"),),
        schedules=30_000,
        found_by=12583,
    ),
    Mutant(
        "a resolution has no dot of its own",
        "svc_sync.registers:resolve",
        (
            (
                "return Register(",
                """same = [one for one, version in register.versions.items() if version.value == value]
    return Register(register.context, {max(same): Version(value)}) if same else Register(""",
            ),
        ),
    ),
    Mutant(
        "a loser is not parked by a write",
        "svc_sync.registers:write",
        (("old: park(version)", "old: version"),),
    ),
    Mutant(
        "an ordinary write silently resolves",
        "svc_sync.registers:write",
        (("if rule is Rule.KEEP_LOSERS:", "if False:"),),
    ),
    Mutant(
        "pruned by what this node knows, not by what all members do",
        f"{_NODE}.prune",
        (("self.horizon(path)", "self.known"),),
    ),
    Mutant(
        "knowledge grows on a broken pull",
        f"{_NODE}.pull",
        (("if page.last:\n            self.known", "if True:\n            self.known"),),
    ),
    Mutant(
        "the common horizon does not count as seen in a join",
        f"{_NODE}.merge",
        (("register, self.horizon(path))", "register, {})"),),
    ),
    Mutant(
        "a crash between two commits: the tree, then the registers",
        f"{_NODE}.merge",
        (
            _CRASH_BEFORE,
            (
                "self._bring_tree_to(changed)",
                """self._bring_tree_to(changed)
        self.registers, self.stamped = old.registers, old.stamped
        self.stamped_system = old.stamped_system
        self.pending = [(now_ms + self.skew, changed)]""",
            ),
        ),
    ),
    Mutant(
        "a crash between two commits: the registers, then the tree",
        f"{_NODE}.merge",
        (
            _CRASH_BEFORE,
            (
                "self._bring_tree_to(changed)",
                """self._bring_tree_to(changed)
        self.tree, self.system = old.tree, old.system
        self.pending = [(now_ms + self.skew, changed)]""",
            ),
        ),
    ),
    Mutant(
        "the last writer wins, and nothing stands beside it",
        "svc_sync.registers:join",
        (
            (
                "return Register(join_rows(a.context, b.context), versions)",
                """best = winner(Register({}, versions))
    return Register(join_rows(a.context, b.context), {best[0]: best[1]})""",
            ),
        ),
    ),
    Mutant(
        "the others do not learn of a new member in time",
        f"{_NODE}.join",
        (
            ("host.cluster = joining.welcome(", "untold = host.cluster\n    host.cluster = joining.welcome("),
            ("self._take_copy(host)", "self._take_copy(host)\n    host.cluster = untold"),
        ),
        schedules=4_000,
        stress=("joiners", "removals"),
        found_by=1410,
    ),
    Mutant(
        "the rows come with the hello only",
        f"{_NODE}.pull",
        (("self.learn(page.cluster)", "pass"),),
        schedules=30_000,
        found_by=20993,
    ),
    Mutant(
        "the register of an empty directory is forgotten too",
        "svc_sync.conflicts:is_settled",
        (("rank(value) == 1 or ", ""),),
    ),
    Mutant(
        "a narrower member vouches for all",
        "svc_sync.cluster:row_after_pull",
        (("if other_scope.holds(scope):", "if True:"),),
    ),
    Mutant(
        "a page is merged however long it was under way",
        "svc_sync.pages:is_current",
        (("if sender not in mine.members:", "return True\n    if sender not in mine.members:"),),
    ),
    Mutant(
        "a member that comes in late is welcome",
        "svc_sync.cluster:learn",
        (("joined.without({*theirs.removed, *late})", "joined.without(theirs.removed)"),),
        schedules=1000,
        stress=("joiners", "removals"),
        found_by=508,
    ),
    Mutant(
        "a stable value that was restated is not known again by its dot",
        "svc_sync.registers:join",
        (("nameless = None if STABLE in one.versions else other.versions.get(STABLE)", "nameless = None"),),
        schedules=400,
        stress=("removals",),
    ),
    Mutant(
        "a restated value stays beside what replaced it",
        "svc_sync.registers:join",
        (("elif dot != STABLE and not covers(other", "elif dot == STABLE or not covers(other"),),
    ),
    Mutant(
        "a removed member is met as any other",
        "svc_sync.hello:_cannot_follow",
        (("if writer in other.cluster.removed:", "if False:"),),
    ),
    Mutant(
        "a node that nobody knows is met as a member",
        "svc_sync.hello:_cannot_follow",
        (("return not covers_row(one.known, other.cluster.floor())", "return False"),),
        schedules=800,
        stress=("joiners", "removals"),
        found_by=301,
    ),
    Mutant(
        "a log that was put back is not found out",
        "svc_sync.hello:_log_was_put_back",
        (("return head is not None", "return False and head is not None"),),
        schedules=2_000,
        stress=("backups",),
        found_by=34,
    ),
    Mutant(
        "what was known at the last page counts, not at the first",
        f"{_NODE}.pull",
        (("first = page.known if first is None else first", "first = page.known"),),
    ),
    Mutant(
        "who returns gives up what nobody had",
        "svc_sync.joining:carry_over",
        (("if not lacking:", "if True:"),),
    ),
    Mutant(
        "who returns forgets what it had replaced",
        "svc_sync.joining:carry_over",
        (
            ("is_seen = covers_row(seen, forgotten)", "is_seen = False"),
            ("not (is_seen or stood_here)", "not is_seen"),
        ),
    ),
    Mutant(
        "who returns brings back what others replaced",
        "svc_sync.joining:carry_over",
        ((" or covers(there.context, dot)", ""),),
        schedules=2_500,
        stress=("removals",),
        found_by=991,
    ),
    Mutant(
        "a log that was put back is trusted",
        f"{_NODE}.join",
        (("old, trusted = self.writer, not self.found_late", "old, trusted = self.writer, True"),),
        schedules=1000,
        stress=("backups",),
    ),
    Mutant(
        "a removal is forgotten when its node returns",
        f"{_NODE}._take_copy",
        ((".without(self.cluster.removed)", ""),),
        schedules=800,
        stress=("removals",),
    ),
    Mutant(
        "a change of a key wins over its removal",
        "svc_sync.registers:_precedence",
        (("int(rule is Rule.REMOVAL_WINS and value is None)", "0"),),
        schedules=400,
        stress=("system",),
    ),
    Mutant(
        "a fork that lost is forgotten",
        "svc_sync.references:shown_references",
        (("losers.append((name, dot, loser.value.root))", "pass"),),
    ),
    Mutant(
        "what a joiner has differently is written over what the cluster has",
        "svc_sync.joining:bring",
        (("    if is_free:\n", "    if is_free or (not blocked and value_of(shown) is not None):\n"),),
    ),
    Mutant(
        "a clock does not follow what it received",
        "svc_sync.clock:next_vt",
        (("max(vt_of(now_ms), last + 1)", "vt_of(now_ms)"),),
    ),
    Mutant(
        "a register is forgotten with its conflicts",
        "svc_sync.conflicts:is_settled",
        (("or not conflicts_of(register, shown)", "or True"),),
    ),
    Mutant(
        "directories stay when the last of what they hold goes",
        "svc_sync.tree:_let_directories_go",
        (("if not overlay.is_vacant(path):", "if True:"),),
    ),
    Mutant(
        "a directory that replaces a file is no deletion of it",
        "svc_sync.stamping:stamp",
        (("if stood is None or (", "if stood is None or new is FULL or ("),),
    ),
)
