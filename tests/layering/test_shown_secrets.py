"""No representation of a value shows a secret: it may stand in a log line, or in a traceback that does."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import pkgutil
import re
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from svc.confidential import Confidential
from svc.operations.declaration import DeclaredOperation
from svc.plugins import Secret

ROOT = Path(__file__).parents[2]
SOURCES = [*ROOT.glob("core/*/src/*"), *ROOT.glob("plugins/*/src/*"), *ROOT.glob("contrib/*/src/*")]
SECRET = re.compile(
    r"(?:.*_)?(?:token|secret|password|root_key|api_key|key|code|private|credentials?|verifier|token_hash|smtp_password)"
)
NO_SECRETS = {
    ("svc.findings", "Finding", "code"),  # which finding
    ("svc.operations.system_models", "PublicFinding", "code"),
    ("svc.pipeline.openapi", "Error", "code"),
    ("svc_events_webhook.configuration", "WebhookConfiguration", "allow_private"),  # whether addresses may be
    ("svc_sync_http.configuration", "SyncHttpConfiguration", "cluster_tls_key"),  # path of a file
    ("svc_events_webhook.models", "ShownWebhook", "has_secret"),  # whether there is one
    ("svc_query.executing.matching", "Row", "key"),  # the place of a row in an order
    ("svc_query.parsing.protocol", "Request", "token"),  # which of several requests
    ("svc_tasks.queue", "Wanted", "key"),  # by which equal tasks are one
    ("svc.pipeline.routing", "Endpoint", "query_token"),  # whether a token may stand in the query
    ("svc.plugins.descriptor", "StartOption", "secret"),  # whether the option is one
    ("svc_server.options", "Option", "secret"),
    ("svc_testing.processes", "Completed", "exit_code"),
    ("svc_auth_oidc.mode", "_Known", "key"),  # the public key of an issuer
}
HIDDEN = "a secret that nobody may see"


def types() -> Iterator[type]:
    """All types of the packages that are installed here."""
    for source in sorted(SOURCES):
        if not (source / "__init__.py").exists() or importlib.util.find_spec(source.name) is None:
            continue
        package = importlib.import_module(source.name)
        for info in pkgutil.walk_packages(package.__path__, f"{source.name}."):
            if info.name.rpartition(".")[2] == "__main__" or ".plugin_template" in info.name:
                continue
            try:
                module = importlib.import_module(info.name)
            except ModuleNotFoundError as error:
                if source.parts[-4] == "contrib" and not str(error.name).startswith("svc"):
                    continue  # What a plugin of contrib needs is not installed here.
                raise
            yield from (
                value
                for value in vars(module).values()
                if isinstance(value, type) and value.__module__ == module.__name__
            )


def fields(kind: type) -> tuple[str, ...]:
    """The names of the fields of a value; nothing for what is none."""
    if issubclass(kind, msgspec.Struct):
        return kind.__struct_fields__
    if dataclasses.is_dataclass(kind):
        return tuple(field.name for field in dataclasses.fields(kind))
    return tuple(getattr(kind, "_fields", ())) if issubclass(kind, tuple) else ()


def made(kind: type, name: str) -> object:
    """An object of a type whose one field holds a secret, and all others nothing."""
    values = {each: HIDDEN if each == name else None for each in fields(kind)}
    if issubclass(kind, msgspec.Struct | tuple):
        return kind(**values)
    value = object.__new__(kind)
    for each, content in values.items():
        object.__setattr__(value, each, content)
    return value


def suspects() -> Iterator[tuple[type, str]]:
    for kind in types():
        for name in fields(kind):
            if SECRET.fullmatch(name) and (kind.__module__, kind.__qualname__, name) not in NO_SECRETS:
                yield kind, name


def test_no_value_shows_a_field_whose_name_says_that_it_is_secret() -> None:
    found = list(suspects())
    assert len(found) > 15, "the search finds what there is"
    shown = [
        f"{kind.__module__}.{kind.__qualname__}.{name}"
        for kind, name in found
        if _kind_of(kind, name) is not Secret and HIDDEN in repr(made(kind, name))
    ]
    assert shown == []


def _kind_of(kind: type, name: str) -> object:
    """The annotated type of a field, as far as its own module knows it."""
    text = getattr(kind, "__annotations__", {}).get(name)
    return getattr(sys.modules[kind.__module__], text, None) if isinstance(text, str) else text


def _parts(form: object, above: tuple[object, ...] = ()) -> Iterator[type]:
    """A type, and all that its fields and arguments are made of."""
    if form in above:
        return
    inner = list(typing.get_args(form))
    if isinstance(form, type):
        yield form
        if issubclass(form, msgspec.Struct):
            inner += [field.type for field in msgspec.structs.fields(form)]
    for part in inner:
        yield from _parts(part, (*above, form))


def test_a_body_with_a_secret_in_it_is_confidential_itself() -> None:
    """Only into such bodies is looked for what the log must not show."""
    sources = {kind.__module__.partition(".")[0] for kind in types()}
    operations = {
        value
        for name, module in list(sys.modules.items())
        if name.partition(".")[0] in sources
        for value in vars(module).values()
        if isinstance(value, DeclaredOperation)
    }
    bodies = {one.signature.body for one in operations}
    with_secrets = [
        body
        for body in bodies
        if any(part is not body and issubclass(part, Confidential) for part in _parts(body))
    ]
    assert len(bodies) > 30
    assert all(isinstance(body, type) and issubclass(body, Confidential) for body in with_secrets)


def test_a_field_that_is_added_later_is_hidden_until_somebody_says_that_it_may_be_seen() -> None:
    class Body(Confidential, frozen=True):
        shown = ("name",)

        name: str
        later: str = HIDDEN

    assert repr(Body("ann")) == "Body(name='ann')"
    assert Body("ann") == Body("ann")
    with pytest.raises(AttributeError):
        Body("ann").name = "bob"  # type: ignore[misc]


def test_every_exception_is_one_that_there_is() -> None:
    known = {(kind.__module__, kind.__qualname__, name) for kind in types() for name in fields(kind)}
    installed = {one for one in NO_SECRETS if importlib.util.find_spec(one[0].partition(".")[0]) is not None}
    assert known >= installed
