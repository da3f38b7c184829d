"""The contract of a plugin's operations: what is declared happens, on a file as over HTTP.

An author tells a story: calls of all operations, and a refusal for each error that one declares. The contract
runs it twice, on an opened file and against the application that serves another, and compares.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar
from urllib.parse import urlencode

import msgspec
import pytest
from falcon.testing import TestClient, create_environ

from svc.database import Database
from svc.errors import BY_CODE, InsufficientStorage, ServiceUnavailable, SvcError
from svc.operations import AccessKind, Created, DeclaredOperation, bind_arguments
from svc.operations.values import pages_of
from svc.paths import parse_path
from svc.plugins import Identity, PluginContext, Plugins, enabled_plugins, initialize, register_views
from svc.plugins.context import make_context
from svc.plugins.lifecycle import EnabledExtensions
from svc_cli.service import FileService
from svc_testing.applications import serve_in_process
from svc_testing.extensions import used_by
from svc_testing.testing_auth import TestingAuthMode, load_with_testing_auth

__all__ = ["OperationsContract", "Teller"]

Operation = DeclaredOperation[..., Any]

STRANGER = Identity("7f0a2b1c-0000-4000-8000-000000000001", "stranger")
"""A user who may do nothing."""

_OPEN_TO_ALL = (AccessKind.PUBLIC, AccessKind.IDENTITY, AccessKind.ACCOUNT, AccessKind.BODY)
_OF_THE_MACHINE = (InsufficientStorage, ServiceUnavailable)
"""Errors that a story can't provoke: a full disk, a server that is busy."""
_LEFT_WITHIN_S = 1.0
DOCUMENT_URL = "/system/openapi.json"


@dataclass
class Told:
    """A call of the story: what was asked, and the answer or the error that it ended with.

    Of a list, ``whole`` is what one page has, and ``single`` what pages of one item have together.
    """

    operation: Operation
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    content: bytes | None = None
    answer: Any = None
    error: SvcError | None = None
    json: Any = None
    whole: list[Any] | None = None
    single: list[Any] | None = None

    @property
    def outcome(self) -> tuple[str, Any]:
        """What both worlds must agree on: the form of an answer; of an error its words."""
        if self.error is not None:
            return self.operation.name, (type(self.error).__name__, self.error.message)
        return self.operation.name, sorted(_members(msgspec.to_builtins(self.answer)))


class Teller:
    """Calls operations for a story. Calling it returns the answer; ``refused`` expects an error."""

    def __init__(self, perform: Callable[[Told], None], *, streams: bool) -> None:
        self.told: list[Told] = []
        self._perform = perform
        self._streams = streams

    def __call__(self, operation: Operation, *args: Any, **kwargs: Any) -> Any:
        """Calls an operation and returns its answer."""
        told = self._tell(Told(operation, args, kwargs))
        assert told.error is None, f"{operation!r} was refused: {told.error}"
        return told.answer

    def refused(self, kind: type[SvcError], operation: Operation, *args: Any, **kwargs: Any) -> SvcError:
        """Calls an operation, which must raise an error of a kind, and returns that.

        What streams is not asked for on a file, which does not have it.
        """
        if operation.responder is not None and not self._streams:
            return kind("")
        told = self._tell(Told(operation, args, kwargs))
        assert isinstance(told.error, kind), f"{operation!r} was not refused by {kind.__name__}: {told}"
        return told.error

    def stream(self, operation: Operation, *args: Any, content: bytes | None = None, **kwargs: Any) -> bytes:
        """Returns the body that an operation with a responder answers; nothing on a file, which has none."""
        if not self._streams:
            return b""
        told = self._tell(Told(operation, args, kwargs, content))
        assert told.error is None, f"{operation!r} was refused: {told.error}"
        body: bytes = told.answer
        return body

    def _tell(self, told: Told) -> Told:
        self._perform(told)
        self.told.append(told)
        return told


@dataclass
class Served:
    """The application that the story was told to."""

    client: TestClient
    mode: TestingAuthMode
    teller: Teller = field(init=False)

    def perform(self, told: Told) -> None:
        """Sends what was told as a request, and takes in the answer; of a list also by other pages."""
        self.send(told)
        operation, signature = told.operation, told.operation.signature
        is_list = signature.asked_in == "query" and signature.pages and operation.responder is None
        if told.error is None and is_list and "limit" in signature.query.__struct_fields__:
            told.whole, told.single = (self._items(told, limit) for limit in (1000, 1))

    def _items(self, told: Told, limit: int) -> list[Any]:
        """The items of all pages of a size."""
        bound = told.operation.parameters.bind(*told.args, **told.kwargs).arguments
        query = bound.get("query") or told.operation.signature.query()

        def page_of(operation: Operation, **arguments: Any) -> Any:
            page = Told(operation, (), arguments)
            self.send(page)
            assert page.error is None, page.error
            return page.answer

        arguments = {**bound, "query": msgspec.structs.replace(query, limit=limit)}
        return list(pages_of(page_of, told.operation, (), arguments))

    def send(self, told: Told) -> None:
        """Sends what was told as a request, and takes in the answer."""
        operation, said = told.operation, bind_arguments(told.operation, told.args, told.kwargs)
        raw = operation.signature.body is bytes
        result = self.client.simulate_request(
            operation.method,
            said.url,
            query_string=urlencode(said.query, doseq=True),
            body=told.content if raw else said.body,
            headers={} if raw or said.body is None else {"Content-Type": "application/json"},
        )
        if result.status_code >= 400:
            told.error = _error_of(result.json)
            return
        if operation.responder is not None:
            told.answer = result.content
            return
        told.json = msgspec.json.decode(result.content)
        signature = operation.signature
        if signature.is_array:
            cursor = next((result.headers.get(name) for name in operation.headers), None)
            items = msgspec.convert(told.json, msgspec.structs.fields(signature.answer)[0].type)
            told.answer = signature.answer(items, has_more=cursor is not None, next_cursor=cursor)
            return
        told.answer = msgspec.json.decode(result.content, type=signature.answer)
        if signature.creates:
            told.answer = Created(told.answer, result.status_code == operation.status)

    def status_of(self, told: Told, identity: Identity | None) -> int:
        """Returns the status that another caller gets for the same request."""
        said = bind_arguments(told.operation, told.args, told.kwargs)
        self.mode.identity = identity
        headers = {} if said.body is None else {"Content-Type": "application/json"}
        return self.client.simulate_request(
            told.operation.method,
            said.url,
            query_string=urlencode(said.query, doseq=True),
            body=said.body,
            headers=headers,
        ).status_code


class OperationsContract:
    """Tests of the operations of an installed plugin. A subclass sets ``plugin_id`` and tells a story.

    Attributes:
        plugin_id: the plugin under test.
        beside: plugins that its story needs beside those that it requires.
        files: contents of files that are there before the story begins, by their paths.
    """

    plugin_id: ClassVar[str]
    beside: ClassVar[Sequence[str]] = ()
    files: ClassVar[Mapping[str, bytes]] = {}

    def story(self, call: Teller) -> None:
        """Calls every operation, and provokes every error that one declares.

        Override it. Answers may be used for later calls: ``user = call(create_user, NewUser("ann"))``, then
        ``call(show_user, user.user_id)``, ``call.refused(AlreadyExists, create_user, NewUser("ann"))``.
        """
        raise AssertionError("The contract needs a story.")

    def prepare(self, database: Database) -> None:
        """Puts into the database what is there before the story begins: ``files``."""
        if self.files:
            with database.transaction() as transaction:
                for path, content in self.files.items():
                    transaction.put(parse_path(path), content, content_type="application/octet-stream")

    @pytest.fixture(scope="class")
    @classmethod
    def plugins(cls) -> Plugins:
        """The plugin and those that it needs."""
        return load_with_testing_auth(*used_by(cls.plugin_id, *cls.beside))

    @pytest.fixture(scope="class")
    @classmethod
    def on_file(cls, tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[Teller]:
        """The story as it went on an opened file."""
        with Database(tmp_path_factory.mktemp("operations") / "file.svcdb") as database:
            assert initialize(database, plugins) == ()
            register_views(database, plugins)
            cls().prepare(database)
            service = FileService(database, lambda _module: _context_of(database, plugins, cls.plugin_id))

            def perform(told: Told) -> None:
                try:
                    told.answer = service.call(told.operation, *told.args, **told.kwargs)
                except SvcError as error:
                    told.error = error

            teller = Teller(perform, streams=False)
            cls().story(teller)
            yield teller

    @pytest.fixture(scope="class")
    @classmethod
    def over_http(cls, tmp_path_factory: pytest.TempPathFactory, plugins: Plugins) -> Iterator[Served]:
        """The story as it went over HTTP."""
        path = tmp_path_factory.mktemp("operations") / "served.svcdb"
        with serve_in_process(path, plugins) as (app, database, mode):
            cls().prepare(database)
            served = Served(TestClient(app), mode)
            served.teller = Teller(served.perform, streams=True)
            cls().story(served.teller)
            yield served

    def test_every_operation_is_called(self, plugins: Plugins, over_http: Served) -> None:
        """The story has all of them."""
        declared = {operation.name for operation in self._declared(plugins)}
        assert declared == {told.operation.name for told in over_http.teller.told if told.error is None}

    def test_the_document_describes_every_operation(self, over_http: Served) -> None:
        """All that is taken and answered has a schema."""
        document = over_http.client.simulate_get(DOCUMENT_URL).json
        described = {one["operationId"] for path in document["paths"].values() for one in path.values()}
        called = {f"{self.plugin_id}.{told.operation.name}" for told in over_http.teller.told}
        assert called <= described

    def test_every_declared_error_is_reached(self, plugins: Plugins, over_http: Served) -> None:
        """What an operation says it raises, it raises."""
        raised = {
            (told.operation.name, kind)
            for told in over_http.teller.told
            if told.error is not None
            for kind in type(told.error).__mro__
        }
        missing = [
            f"{operation.name}: {error.__name__}"
            for operation in self._declared(plugins)
            for error in operation.errors
            if (operation.name, error) not in raised and error not in _OF_THE_MACHINE
        ]
        assert missing == []

    def test_a_file_answers_as_a_server(self, on_file: Teller, over_http: Served) -> None:
        """The same answers, and the same refusals with the same words."""
        of_server = [told.outcome for told in over_http.teller.told if told.operation.responder is None]
        assert [told.outcome for told in on_file.told if told.operation.responder is None] == of_server

    def test_answers_have_the_declared_members(self, over_http: Served) -> None:
        """Nothing is answered that the declaration does not name."""
        for told in over_http.teller.told:
            if told.json is not None:
                value = told.answer.value if isinstance(told.answer, Created) else told.answer
                value = value.items if told.operation.signature.is_array else value
                assert _members(told.json) <= _members(msgspec.to_builtins(value)), told.operation.name

    def test_pages_neither_skip_nor_repeat(self, over_http: Served) -> None:
        """Pages of one item have together what one page has."""
        for told in over_http.teller.told:
            assert told.single == told.whole, told.operation.name

    def test_permission_is_asked(self, over_http: Served) -> None:
        """Only what is public is open to all, and no stranger may do what needs rights."""
        for told in over_http.teller.told:
            kind = told.operation.access.kind
            if told.error is not None:
                continue
            with _as_root_again(over_http.mode):
                if kind is not AccessKind.PUBLIC:
                    assert over_http.status_of(told, None) == 401, told.operation.name
                if kind not in _OPEN_TO_ALL:
                    assert over_http.status_of(told, STRANGER) in (403, 404), told.operation.name

    def test_a_client_who_left_ends_it(self, over_http: Served) -> None:
        """A stream that is left after its first piece ends at once."""
        app: Any = over_http.client.app
        for told in over_http.teller.told:
            if told.operation.responder is None or told.error is not None or told.operation.method != "GET":
                continue
            said = bind_arguments(told.operation, told.args, told.kwargs)
            environ = create_environ(
                said.url, method=told.operation.method, query_string=urlencode(said.query, doseq=True)
            )
            pieces = app(environ, lambda _status, _headers: None)
            next(iter(pieces), b"")
            began = time.monotonic()
            if hasattr(pieces, "close"):
                pieces.close()
            assert time.monotonic() - began < _LEFT_WITHIN_S, told.operation.name

    def _declared(self, plugins: Plugins) -> list[Operation]:
        return list(plugins.descriptors[self.plugin_id].declared_operations())


def _context_of(database: Database, plugins: Plugins, plugin_id: str) -> PluginContext:
    enabled = enabled_plugins(database, plugins)[plugin_id]
    return make_context(plugin_id, enabled.configuration, database, EnabledExtensions(database, plugins))


@contextmanager
def _as_root_again(mode: TestingAuthMode) -> Iterator[None]:
    """Afterwards requests come from the same caller as before."""
    before = mode.identity
    try:
        yield
    finally:
        mode.identity = before


def _error_of(body: Mapping[str, Any]) -> SvcError:
    """The error that an answer reports."""
    kind = BY_CODE.get(body["code"], SvcError)
    details = {name: value for name, value in body.items() if name not in ("error", "code")}
    return kind(body["error"], **details)


def _members(value: Any, prefix: str = "") -> set[str]:
    """The paths of all members of a JSON value."""
    if isinstance(value, dict):
        return {f"{prefix}.{name}" for name in value}.union(
            *(_members(member, f"{prefix}.{name}") for name, member in value.items())
        )
    if isinstance(value, list):
        return set().union(*(_members(item, f"{prefix}[]") for item in value))
    return set()
