"""Keeps secrets out of the log: every value that is logged goes through here first.

What looks like a key, a token, an ``Authorization`` value or a secret query parameter is replaced;
members that are called like a secret are replaced whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, MutableMapping
from typing import Any

__all__ = ["REDACTED", "redact_event", "redact_text", "redact_value"]

REDACTED = "[redacted]"

_SECRET_NAMES = re.compile(
    r"authorization|cookie|password|passwd|secret|credential|api[-_]?key$|^token$|_token$|token_|signing_key|private_key",
    re.IGNORECASE,
)
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


def redact_text(text: str) -> str:
    """Returns ``text`` with every secret in it replaced."""
    if _HINT.search(text) is None:
        return text
    for pattern, replacement in _PATTERNS:
        text = pattern.sub(replacement, text)
    return text


def redact_value(value: Any) -> Any:
    """Returns a log value with every secret in it replaced; containers are copied."""
    if isinstance(value, str):
        return redact_text(value)
    if isinstance(value, Mapping):
        return {key: _redact_member(str(key), member) for key, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact_value(member) for member in value]
    if isinstance(value, int | float | bool) or value is None:
        return value
    return redact_text(str(value))


def redact_event(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """The structlog processor: redacts every member of a log event. Stands after what formats tracebacks."""
    for key, value in event.items():
        event[key] = _redact_member(key, value)
    return event


def _redact_member(key: str, value: Any) -> Any:
    if value and _SECRET_NAMES.search(key):
        return REDACTED
    return redact_value(value)
