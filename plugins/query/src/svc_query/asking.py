"""Questions as routes and commands ask them: bodies in, answers out, of a database as one caller sees it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from svc.errors import InvalidInput
from svc.plugin import (
    ROOT_IDENTITY,
    Database,
    Entry,
    EntryKind,
    Identity,
    Operation,
    Path,
    PluginContext,
    Version,
    is_system_path,
    parse_path,
    path_not_found,
    permitted,
    visible_parts,
)
from svc_query.aggregation import Aggregates
from svc_query.api import QUERY_OPERATORS, Leaf, QueryOperator
from svc_query.built_in_operators import Match
from svc_query.configuration import QueryConfiguration
from svc_query.cursors import Cursors
from svc_query.executing.answering import Answer, Question, answer_query, coverage_for
from svc_query.executing.budget import Budget
from svc_query.executing.visibility import Caller
from svc_query.filters import And, Filter, LeafFilter, Not, Or, parse_filter
from svc_query.index_configuration import is_configuration
from svc_query.locators import Hit, locate, text_reader
from svc_query.models import AggregateBody, QueryBody, SearchBody, StatusQuery
from svc_query.ordering import Order, OrderField
from svc_query.snapshot import VIRTUAL_FIELDS, Coverage, Document, Snapshot

__all__ = ["Asker", "index_status", "sees_everything", "settings_of"]

if TYPE_CHECKING:
    from svc.plugin import Call

T = TypeVar("T")

_READ = Operation.READ
_SHOWN = Operation.READ.bit | Operation.LIST.bit
_SEARCH_LIMIT = 50
_MOST_WAITED_FOR = 1_000


class Asker(NamedTuple):
    """Who asks which database; ``identity`` is root for whoever holds the file. Operators are by name.

    ``deadline`` is until when an answer may take; None: as long as the settings say, from the question on.
    """

    database: Database
    context: PluginContext
    operators: Mapping[str, QueryOperator]
    identity: Identity = ROOT_IDENTITY
    deadline: float | None = None

    @classmethod
    def of(
        cls,
        database: Database,
        context: PluginContext,
        identity: Identity = ROOT_IDENTITY,
        deadline: float | None = None,
    ) -> Asker:
        """Returns one with the operators that are in use."""
        operators = {name: one.value for name, one in context.extensions(QUERY_OPERATORS).items()}
        return cls(database, context, operators, identity, deadline)

    @classmethod
    def of_call(cls, call: Call, body: QueryBody | SearchBody) -> Asker:
        """Returns one for a call. The index of a file is made complete, unless the body does without."""
        assert call.plugin is not None
        deadline = call.deadline
        is_past = body.snapshot is not None or body.version is not None or body.fork is not None
        if not (call.is_served or is_past or body.consistency == "eventual"):
            from svc_cli import progress_bar
            from svc_query.indexing import finish_work

            with progress_bar("Indexing") as progress:
                finish_work(call.database, progress=progress)
            deadline = None
        return cls.of(call.database, call.plugin, call.identity, deadline)

    @property
    def settings(self) -> QueryConfiguration:
        """The settings of the plugin in the database."""
        return settings_of(self.context)

    def query(self, body: QueryBody) -> dict[str, Any]:
        """Answers a body of ``POST /query``. Blocks, and gives others their turn.

        Raises InvalidInput for a query that can't be answered, NotFound where its path, snapshot, version or
        fork is not there for this caller, and ServiceUnavailable where the index is behind, or the time is
        over.
        """
        settings = self.settings
        where = parse_filter(body.where)
        question = Question(
            parse_path(body.path),
            where,
            _limit(body.limit, settings.default_limit, settings.maximum_limit),
            body.limit is None,
            body.offset,
            tuple(OrderField(one.field, one.direction == "desc") for one in body.order_by),
            body.after,
            body.before,
            body.include_total,
            body.include_matches,
            body.select,
            _aggregates(body.aggregate),
            _explained(body),
            settings.maximum_rows,
        )
        reads_files = any(not name.startswith("@") for name in _fields_of(question))
        return self._ask(body, question.path, reads_files, lambda path, _: question._replace(path=path))

    def search(self, body: SearchBody) -> dict[str, Any]:
        """Answers a body of ``POST /files/search``; as ``query``."""
        settings = self.settings
        if body.query is None and body.where is None:
            raise InvalidInput("A search needs query, where, or both.", field="query")
        if body.query is not None and not body.query.strip():
            raise InvalidInput("The query of a search has at least one word.", field="query")
        where = None if body.where is None else parse_filter(body.where)
        limit = _limit(body.limit, _SEARCH_LIMIT, settings.maximum_limit)

        def question(path: Path, coverage: Coverage) -> Question:
            parts: list[Filter] = [] if where is None else [where]
            if body.query is not None:
                parts.append(_search_filter(body.query, coverage, self.operators))
            filter_ = parts[0] if len(parts) == 1 else And(tuple(parts))
            return Question(
                path,
                filter_,
                limit,
                offset=body.offset,
                include_total=True,
                include_matches=True,
                aggregates=_aggregates(body.aggregate),
                explain=_explained(body),
                most_rows=settings.maximum_rows,
            )

        answer = self._ask(body, parse_path(body.path), True, question)
        for name in ("next_cursor", "prev_cursor"):  # a search takes an offset
            answer.pop(name, None)
        return answer

    def _ask(
        self,
        body: QueryBody | SearchBody,
        path: Path,
        reads_files: bool,
        question_of: Callable[[Path, Coverage], Question],
    ) -> dict[str, Any]:
        settings = self.settings
        database = self.database
        past = body.snapshot is not None or body.version is not None or body.fork is not None
        if past:
            root = database.resolve_version(snapshot=body.snapshot, version=body.version, fork=body.fork)
            version = database.at(root)
        else:
            version = database.at()
        # What is gone from HEAD is for those only who may see what was deleted; a fork has never been there.
        head = database.at() if past and (body.snapshot is not None or body.version is not None) else None
        path, caller = self._caller(version, path, head)
        budget = Budget(settings.query_seconds, settings.maximum_rows, ends=self.deadline)

        def answer(snapshot: Snapshot, seen: Caller) -> Answer:
            coverage = coverage_for(snapshot, seen, path)
            question = question_of(path, coverage)
            identity = database.database_id
            return answer_query(snapshot, seen, question, self.operators, budget, identity, coverage)

        if past or is_configuration(path):  # configuration is no document, and stands in no index
            with database.hold_version(version.root):
                found = self._walk(version, caller, budget, answer, self._walks_from(body))
        else:
            found = self._at_head(body, caller, reads_files, lambda snapshot: answer(snapshot, caller))
        if found.hits is not None:
            _add_matches(found.body["results"], found.hits, version, budget)
        return found.body

    def _at_head(
        self,
        body: QueryBody | SearchBody,
        caller: Caller,
        reads_files: bool,
        function: Callable[[Snapshot], T],
    ) -> T:
        from svc_query.indexing import read_snapshot

        strict = body.consistency == "strict"
        parts = caller.parts[:_MOST_WAITED_FOR]
        # What they may not read is not to hold them up, nor to be told by that it does.
        waited = [(part, None if is_whole else caller.may) for part, is_whole in parts]
        return read_snapshot(
            self.database,
            function,
            minimum=None if strict else 0,
            wait_until=time.monotonic() + self.settings.wait_seconds,
            waits_for=waited if strict and reads_files else (),
            builds=[part for part, _ in parts] if strict else (),
        )

    def _walk(
        self,
        version: Version,
        caller: Caller,
        budget: Budget,
        function: Callable[[Snapshot, Caller], T],
        after: Path | None,
    ) -> T:
        from svc_query.walking import walk_version

        sequence = self.database.head().sequence
        snapshot = walk_version(version, sequence, caller, self.context, budget, after)
        # All that was numbered is for the caller.
        seen = caller._replace(parts=tuple((part, True) for part, _ in caller.parts))
        return function(snapshot, seen)

    def _walks_from(self, body: QueryBody | SearchBody) -> Path | None:
        """Where a walk for a page in the order of the paths begins; what is before it is not looked at."""
        if not isinstance(body, QueryBody) or body.after is None or body.order_by or body.include_total:
            return None
        if body.aggregate is not None or self._may_score(parse_filter(body.where)):
            return None
        path: Path = Cursors(self.database.database_id, Order()).decode(body.after, "after")[-1]
        return path

    def _may_score(self, where: Filter) -> bool:
        """Whether rows of a filter may differ by their scores, so that these order them."""
        for leaf in _leaves_of(where):
            operator = self.operators.get(leaf.op)
            if operator is None or isinstance(operator, Match):
                return True
            try:
                predicate = operator.compile(Leaf(leaf.field, leaf.op, leaf.value, leaf.options))
            except InvalidInput:
                return True  # the planner refuses it in words
            if predicate.scored:
                return True
        return False

    def _caller(self, version: Version, path: Path, head: Version | None) -> tuple[Path, Caller]:
        """The path with its links followed, and what the caller may read at and below it."""
        identity = self.identity
        if is_system_path(path):
            raise path_not_found(path)
        is_root = identity.is_unrestricted_root

        def passes(link: Path) -> bool:
            return is_root or bool(permitted(identity, link) & _SHOWN)

        found, entry = version.follow_parents(path, may_pass=passes)
        if is_system_path(found):
            raise path_not_found(path)
        if is_root:
            if found and (entry is None or entry.kind is EntryKind.SYMLINK):
                raise path_not_found(path)
            return found, Caller.of_everything(found)
        parts = visible_parts(identity, _READ, found)
        if parts == ():
            raise path_not_found(path)
        known = bool(permitted(identity, found, directory=_is_directory(entry)) & _SHOWN)
        if entry is None and known:
            # To others one that is not there looks like one without anything for them.
            raise path_not_found(path)
        return found, Caller(
            ((found, False),) if parts is None or head is not None else parts,
            self._may(head),
            sees_all=head is None and sees_everything(identity),
            shown=known,
        )

    def _may(self, head: Version | None) -> Callable[[Path], bool]:
        identity, read, delete = self.identity, _READ.bit, Operation.DELETE.bit

        def may(path: Path) -> bool:
            mask = permitted(identity, path)
            if not mask & read:
                return False
            return head is None or bool(mask & delete) or head.get(path) is not None

        return may


def index_status(call: Call, path: Path, query: StatusQuery) -> dict[str, Any]:
    """Returns the state of the index at and below a path, as far as the caller may see it; blocks."""
    from svc_query.indexing import read_status

    assert call.plugin is not None
    wait_until = time.monotonic() + settings_of(call.plugin).wait_seconds if call.is_served else 0.0
    may_read = None if sees_everything(call.identity) else partial(call.may, Operation.READ)
    return read_status(
        call.database, path, query.after, query.limit, may_read=may_read, wait_until=wait_until
    )


def settings_of(context: PluginContext) -> QueryConfiguration:
    """Returns the settings of the plugin in a database."""
    configuration = context.configuration
    return configuration if isinstance(configuration, QueryConfiguration) else QueryConfiguration()


def _is_directory(entry: Entry | None) -> bool:
    return entry is not None and entry.kind is EntryKind.DIRECTORY


def _limit(given: int | None, default: int, most: int) -> int:
    limit = min(default, most) if given is None else given
    if not 1 <= limit <= most:
        raise InvalidInput(f"The limit is a number from 1 to {most}.", field="limit", limit=most)
    return limit


def _explained(body: QueryBody | SearchBody) -> str | None:
    return "plan" if body.explain is True else body.explain or None


def _aggregates(body: AggregateBody | None) -> Aggregates | None:
    if body is None:
        return None
    asked = Aggregates(
        body.count,
        *(tuple(dict.fromkeys(names)) for names in (body.sum, body.avg, body.min, body.max, body.group_by)),
    )
    # Groups say how many they hold, and so does what asks for nothing else.
    return asked._replace(counts=body.count or bool(asked.groups) or not asked.fields)


def _fields_of(question: Question) -> frozenset[str]:
    """The fields that decide what the answer is."""
    names = {field.name for field in question.order}
    names.update(question.select or ())
    if question.aggregates is not None:
        names.update(question.aggregates.fields)
    names.update(leaf.field for leaf in _leaves_of(question.where))
    return frozenset(names)


def _leaves_of(where: Filter) -> Iterator[LeafFilter]:
    pending: list[Filter] = [where]
    while pending:
        one = pending.pop()
        if isinstance(one, LeafFilter):
            yield one
        elif isinstance(one, Not):
            pending.append(one.child)
        else:
            pending.extend(one.children)


def _search_filter(query: str, coverage: Coverage, operators: Mapping[str, QueryOperator]) -> Filter:
    """Words in any full-text field; where there is none, texts that are like the query in trigram fields."""
    for operator, index_type in (("search", "fulltext"), ("match", "trigram")):
        if operator not in operators:
            continue
        fields = sorted(name for name, use in coverage.fields.items() if index_type in use.index_types)
        fields = [name for name in fields if name not in VIRTUAL_FIELDS] or fields
        if fields:
            return Or(tuple(LeafFilter(name, operator, query, True, {}) for name in fields))
    raise InvalidInput(
        "No field here can be searched: add one to indexes.json with the type fulltext.",
        field="query",
        index_type="fulltext",
    )


def sees_everything(identity: Identity) -> bool:
    """Whether somebody may read every file, whatever is stored."""
    return visible_parts(identity, _READ, ()) == (((), True),)


def _add_matches(
    rows: Sequence[dict[str, Any]],
    hits: Sequence[tuple[Document, list[Hit]]],
    version: Version,
    budget: Budget,
) -> None:
    read = text_reader(version)
    for row, (document, found) in zip(rows, hits, strict=True):
        budget.look()
        row["matches"] = locate(document, found, read)
