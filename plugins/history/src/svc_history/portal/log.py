"""The log as a graph: HEAD and some forks as lanes, newest first; and what one commit changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from msgspec import Struct
from svc_portal.api import Answer, PortalPage, Shown

from svc.errors import Forbidden
from svc_history.log import place_before, sequence_of_place
from svc_history.models import Commit, CommitDetails, LogQuery, PageQuery
from svc_history.operations import list_commits, show_commit
from svc_history.portal.comparison import change_rows
from svc_history.portal.shown import ROWS, hidden_as_missing, past_url, short, what_changed, who
from svc_versions.api import operations as versions

if TYPE_CHECKING:
    from svc_portal.api import PortalRequest

__all__ = ["CommitPage", "LogPage"]

HEAD = "HEAD"
MOST_LANES = 6
_SHOWN_NAMES = 5


class _Lane(Struct):
    """Commits of HEAD, or of a fork, newest first; ``floor``: what is older was not read."""

    name: str
    commits: list[Commit]
    floor: int
    begins: int | None = None


class LogPage(PortalPage):
    """Commits of HEAD and of forks."""

    name: ClassVar[str] = "log"
    path: ClassVar[str] = "log"
    title: ClassVar[str] = "Log"
    place: ClassVar[int | None] = 20

    def show(self, request: PortalRequest) -> Answer:
        """A page of it; what is read is bounded by the rows and the lanes, whatever there is."""
        before = _number(request.query.get("before"))
        chosen = [name for name in dict.fromkeys(request.query.all("fork")) if name][: MOST_LANES - 1]
        forks = chosen or _newest_forks(request)
        lanes = [_lane(request, None, before), *(_lane(request, name, before) for name in forks)]
        floor = max(lane.floor for lane in lanes)
        commits = [one for lane in lanes for one in lane.commits if one.sequence >= floor]
        commits = sorted(commits, key=lambda one: one.sequence, reverse=True)
        shown = commits[:ROWS]
        following = shown[-1].sequence if len(commits) > ROWS else floor
        names = _snapshots_of(request, {one.version for one in shown if one.version})
        values = {
            "rows": [_row(request, one, names) for one in _placed(lanes, shown, before)],
            "lanes": [lane.name for lane in lanes],
            "chosen": chosen,
            "here": request.url("log"),
            "before": before,
            "next_url": request.url("log", {"fork": chosen, "before": following}) if following else None,
        }
        return Shown("log.html", values)


class CommitPage(PortalPage):
    """One commit of HEAD."""

    name: ClassVar[str] = "commits"
    path: ClassVar[str] = "commits/{version}"
    title: ClassVar[str] = "Commit"
    follows: ClassVar[str | None] = "log"

    def show(self, request: PortalRequest) -> Answer:
        """What it changed, by pages."""
        version: str = request.fields["version"]
        after = request.query.get("after") or None
        with hidden_as_missing():
            commit = request.call(show_commit, version, PageQuery(limit=ROWS, after=after))
        values = {
            "commit": commit,
            "who": who(request, commit),
            "counts": _counts(commit),
            "changes": change_rows(request, commit.changes, commit.parent, commit.version),
            "look_url": None if commit.collected is True else past_url(request, (), commit.version),
            "next_url": request.url("commits", {"after": commit.next_cursor}, version=version)
            if commit.has_more
            else None,
        }
        return Shown("commit.html", values, title=f"Commit {commit.sequence:,}")


def _counts(commit: CommitDetails) -> str:
    totals = commit.totals
    if totals is None:
        return "too much to count" if commit.collected is not True else "no longer known"
    return f"{totals.added:,} added, {totals.modified:,} modified, {totals.deleted:,} deleted"


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None


def _newest_forks(request: PortalRequest) -> list[str]:
    try:
        return [one.name for one in request.call(versions.list_forks).forks[: MOST_LANES - 1]]
    except Forbidden:  # the holder of a share link has no account
        return []


def _lane(request: PortalRequest, fork: str | None, before: int | None) -> _Lane:
    after = None if before is None else place_before(fork, before)
    page = request.call(list_commits, LogQuery(fork=fork, limit=ROWS, after=after))
    ref = HEAD if fork is None else f"forks/{fork}"
    own = [one for one in page.commits if one.ref == ref]
    lane = _Lane(fork or HEAD, own, 0)
    if len(own) == len(page.commits) and page.has_more and page.next_cursor is not None:
        stage, place = sequence_of_place(page.next_cursor)
        if fork is None or stage == "fork":
            lane.floor = place
    if fork is not None:
        lane.begins = next((one.sequence for one in own if one.parent is None), None)
    return lane


def _snapshots_of(request: PortalRequest, roots: set[str]) -> dict[str, list[str]]:
    """The names of versions that are shown."""
    found: dict[str, list[str]] = {}
    try:
        for one in request.call(versions.list_snapshots).snapshots:
            if one.root_hash in roots:
                found.setdefault(one.root_hash, []).append(one.name)
    except Forbidden:
        pass
    return found


def _placed(lanes: list[_Lane], shown: list[Commit], before: int | None) -> list[tuple[Commit, list[str]]]:
    """Commits, each with what every lane looks like beside it: classes of the style sheet."""
    # A lane is there from its newest commit on, or from above the page, down to where it began.
    newest = [None if before is not None and lane.commits else _newest(lane) for lane in lanes]
    placed = []
    for commit in shown:
        places: list[str] = []
        begun = -1
        for number, lane in enumerate(lanes):
            is_own = commit.ref == (HEAD if number == 0 else f"forks/{lane.name}")
            first = newest[number]
            is_on = bool(lane.commits) or number == 0
            is_on = is_on and (first is None or commit.sequence <= first)
            is_on = is_on and (lane.begins is None or commit.sequence >= lane.begins)
            words = [*(["head"] if number == 0 else []), *(["on"] if is_on else [])]
            if is_own:
                words += ["dot-here", *(["first"] if commit.sequence == first else [])]
                if commit.sequence == lane.begins:
                    words.append("begins")
                    begun = number
            places.append(" ".join(words))
        for number in range(begun + 1):
            places[number] += " across"
        placed.append((commit, places))
    return placed


def _newest(lane: _Lane) -> int:
    return lane.commits[0].sequence if lane.commits else -1


def _row(
    request: PortalRequest,
    placed: tuple[Commit, list[str]],
    names: dict[str, list[str]],
) -> dict[str, Any]:
    commit, places = placed
    is_of_head = commit.ref == HEAD
    named = names.get(commit.version or "", [])
    versions_of = {"from": commit.parent, "to": commit.version}
    comparable = commit.collected is not True and commit.version and commit.parent
    return {
        "commit": commit,
        "places": places,
        "where": commit.ref.removeprefix("forks/"),
        "who": who(request, commit),
        "what": "began here" if commit.parent is None else what_changed(commit),
        "message": commit.message or "",
        "names": named[:_SHOWN_NAMES],
        "more_names": max(0, len(named) - _SHOWN_NAMES),
        "short": short(commit.version),
        "url": request.url("commits", version=commit.sequence)
        if is_of_head
        else request.url("compare", versions_of, path=())
        if comparable
        else None,
        "look_url": None if commit.collected is True else past_url(request, (), commit.version),
    }
