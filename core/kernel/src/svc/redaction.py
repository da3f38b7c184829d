"""Keeps secrets out of the log, of findings and of error answers: every text of them goes through here.

Replaced is what looks like a key, a token, an ``Authorization`` value or a secret query parameter, and
members that are called like a secret. So are the very credentials of the request that is being answered, in
the forms in which a text usually holds them: as they are, escaped, percent-encoded, in base64.
"""

from __future__ import annotations

import base64
import binascii
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qsl, quote, quote_plus

from svc.confidential import Confidential

__all__ = [
    "REDACTED",
    "conceal",
    "enter_request",
    "holds_credential",
    "is_secret_name",
    "leave_request",
    "redact_answer",
    "redact_own",
    "redact_text",
    "redact_value",
    "text_of",
]

REDACTED = "[redacted]"
SHORTEST_CREDENTIAL = 8
"""Shorter ones are words: replacing them would spoil texts and protect nothing."""

_KEPT_CREDENTIALS = 256
_CONCEALED = "svc.concealed"

_SECRET_NAMES = re.compile(
    r"authorization|cookie|password|passwd|secret|credential|api[-_]?key$|^token$|_token$|token_|signing_key|private_key",
    re.IGNORECASE,
)
_SECRET_PARAMETER = re.compile(r"(?i)[a-z_]*token|code|api_key|key|password|secret")
_PATTERNS = (
    # API keys: the id may be shown, the secret may not.
    (re.compile(r"\bsvc_k_([A-Za-z0-9\-]+)_[A-Za-z0-9_\-]+"), rf"svc_k_\1_{REDACTED}"),
    (re.compile(r"\bsvc_([A-Za-z0-9\-]+)_[A-Za-z0-9_\-]{24,}"), rf"svc_\1_{REDACTED}"),
    (re.compile(r"\brt_[A-Za-z0-9_\-]{4,}"), f"rt_{REDACTED}"),
    (re.compile(r"\beyJ[A-Za-z0-9_\-]+\.[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]*)?"), REDACTED),
    (re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9+/=._~\-]{4,}"), rf"\1 {REDACTED}"),
    (
        re.compile(r"(?i)([?&;](?:[a-z_]*token|code|api_key|key|password|secret)=)[^&;\s\"'#]+"),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(r"(?i)(authorization['\"]?\s*[:=]\s*['\"]?)(?!(?:bearer|basic)\s)[^\s,'\"]+"),
        rf"\1{REDACTED}",
    ),
)
_HINT = re.compile(r"(?i)svc_|rt_|eyJ|bearer|basic|authorization|[?&;][a-z_]+=")
_PARTS = re.compile(r"[^\s,;=\"]{16,}")

_request: ContextVar[dict[str, Any] | None] = ContextVar("svc_request", default=None)
_recent: dict[str, None] = {}


# The request that is being answered ------------------------------------------------------------------------


def enter_request(environ: dict[str, Any]) -> None:
    """Says which request this greenlet or thread answers from now on; nothing is looked up in it yet."""
    _request.set(environ)
    authorization = environ.get("HTTP_AUTHORIZATION")
    if authorization is not None and authorization not in _recent:
        if len(_recent) >= _KEPT_CREDENTIALS:
            _recent.pop(next(iter(_recent)), None)
        _recent[authorization] = None


def leave_request() -> None:
    """Says that the request is answered."""
    _request.set(None)


def conceal(value: Any) -> None:
    """Adds to this request's credentials what its body holds under names of secrets, three levels deep.

    Looked into are bodies of a ``Confidential`` type and those without a type.
    """
    environ = _request.get()
    if environ is None:
        return
    found = [text for text in _secret_members(value, 3) if len(text) >= SHORTEST_CREDENTIAL]
    if found:
        environ[_CONCEALED] = (*environ.get(_CONCEALED, ()), *found)


def holds_credential(environ: Mapping[str, Any], text: str) -> bool:
    """Whether a text holds a credential of a request as it was sent; cheap, and blind to other forms."""
    if len(text) < SHORTEST_CREDENTIAL:
        return False
    values = (credential.partition(" ")[2] or credential for credential in _credentials_of(environ))
    return any(len(value) >= SHORTEST_CREDENTIAL and value in text for value in values)


# Texts -----------------------------------------------------------------------------------------------------


def redact_text(text: str) -> str:
    """Returns ``text`` with every secret in it replaced.

    Also those of the latest requests before this one: a text that is made outside of one may hold them too.
    """
    for credential in tuple(_recent):
        text = _mask(text, (credential,))
    return redact_own(text)


def redact_own(text: str) -> str:
    """As ``redact_text``, with the credentials of the present request only: cheap for every line."""
    environ = _request.get()
    if environ is not None and len(text) >= SHORTEST_CREDENTIAL:
        text = _mask(text, _credentials_of(environ))
    if _HINT.search(text) is None:
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def redact_answer(environ: Mapping[str, Any], text: str) -> str:
    """Returns a text of an error for the client who sent a request, without its credentials."""
    return redact_own(text) if holds_credential(environ, text) else text


def redact_value(value: Any) -> Any:
    """Returns a log value with every secret in it replaced; containers are copied."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {_redact_key(key): _redact_member(str(key), member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_value(member) for member in value]
    if isinstance(value, int | float | bool) or value is None:
        return value
    return redact_text(text_of(value))


def text_of(value: object) -> str:
    """``str(value)``, or its type where that fails: foreign objects may raise anything."""
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - who tells of an error must not fail for its text
        return f"a {type(value).__name__} that has no text"


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether a member of this name is a secret as a whole."""
    return _SECRET_NAMES.search(name) is not None


def _redact_member(key: str, value: Any) -> Any:
    if value and is_secret_name(key):
        return REDACTED
    return redact_value(value)


def _redact_key(key: Any) -> Any:
    return redact_text(key) if isinstance(key, str) and len(key) >= SHORTEST_CREDENTIAL else key


# Credentials -----------------------------------------------------------------------------------------------


def _credentials_of(environ: Mapping[str, Any]) -> tuple[str, ...]:
    found = [value for key, value in environ.items() if _is_secret_header(key) and isinstance(value, str)]
    query = environ.get("QUERY_STRING")
    if query and "=" in query:
        found += _secret_parameters(query)
    return (*found, *environ.get(_CONCEALED, ()))


@lru_cache(maxsize=1024)
def _is_secret_header(key: str) -> bool:
    return key.startswith("HTTP_") and is_secret_name(key[5:])


def _secret_parameters(query: str) -> list[str]:
    pairs = [*parse_qsl(query, errors="replace"), *(part.partition("=")[::2] for part in query.split("&"))]
    return [value for name, value in pairs if _SECRET_PARAMETER.fullmatch(name)]


def _secret_members(value: Any, depth: int) -> Iterator[str]:
    if depth == 0:
        return
    for name, member in _members(value):
        if isinstance(member, str):
            if is_secret_name(name) or _SECRET_PARAMETER.fullmatch(name):
                yield member
        else:
            yield from _secret_members(member, depth - 1)


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    if isinstance(value, dict):
        return ((str(name), member) for name, member in value.items())
    if isinstance(value, Confidential):
        return ((name, getattr(value, name)) for name in value.__struct_fields__)
    return ()


def _mask(text: str, credentials: tuple[str, ...]) -> str:
    if not credentials:
        return text
    shortest, forms = _forms(credentials)
    if len(text) < shortest:
        return text
    for form in forms:
        if form in text:
            text = text.replace(form, REDACTED)
    return text


@lru_cache(maxsize=2 * _KEPT_CREDENTIALS)
def _forms(credentials: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    forms: set[str] = set()
    for credential in credentials:
        for secret in _secrets_in(credential):
            forms.update(_written(secret))
    kept = sorted((form for form in forms if len(form) >= SHORTEST_CREDENTIAL), key=len, reverse=True)
    return len(kept[-1]) if kept else 1 << 62, tuple(kept)


def _secrets_in(credential: str) -> Iterator[str]:
    """A credential, and the parts of it that are secrets by themselves."""
    yield credential
    if not credential.isascii():
        # As WSGI has it each character is a byte.
        yield credential.encode("latin-1", "replace").decode("utf-8", "replace")
    scheme, _, value = credential.partition(" ")
    if value:
        yield value.strip()
    if scheme.lower() == "basic":
        with_name = _decoded(value.strip())
        yield with_name
        yield with_name.partition(":")[2]
    # Cookies and signatures: names with values.
    yield from _PARTS.findall(credential)
    for part in re.split(r"[;,]\s*", credential):
        yield part.partition("=")[2].strip('" ')


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value + "==", validate=False).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""


def _written(secret: str) -> Iterator[str]:
    if len(secret) < SHORTEST_CREDENTIAL:
        return
    data = secret.encode("utf-8", "replace")
    plain = {secret, secret.upper()}
    for safe in ("", "/", "/:@", "~"):
        encoded = quote(data, safe=safe)
        plain |= {encoded, re.sub(r"%..", lambda match: match[0].lower(), encoded)}
    plain |= {quote_plus(data), html.escape(secret), repr(data)[2:-1]}
    plain |= {text.lower() for text in plain}
    yield from plain
    for text in plain:
        yield repr(text)[1:-1]
        yield ascii(text)[1:-1]
        quoted = json.dumps(text)[1:-1]
        yield quoted
        yield quoted.replace("/", "\\/")
        yield json.dumps(text, ensure_ascii=False)[1:-1]
        yield json.dumps(quoted)[1:-1]
        yield repr(repr(text))[2:-2]
    yield data.hex()
    yield data.hex().upper()
    yield from _in_base64(data)


def _in_base64(data: bytes) -> Iterator[str]:
    """The part that base64 of any text with ``data`` in it has, for each of the three alignments."""
    for offset, skipped in ((0, 0), (1, 2), (2, 3)):
        encoded = base64.b64encode(bytes(offset) + data).decode("ascii")
        core = encoded[skipped : (offset + len(data)) * 8 // 6]
        yield core
        yield core.replace("+", "-").replace("/", "_")
