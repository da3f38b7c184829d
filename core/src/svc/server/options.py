"""The options of ``svc start``: one table, from which come the command, the environment and the file.

What was given flows in from three places; one checked ``ServerSettings`` flows out. The command line comes
before the environment (``SVC_<OPTION>``), that before the file (``--config``), that before the default.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from svc.errors import UsageError

__all__ = ["OPTIONS", "Option", "ServerSettings", "default_workers", "resolve_settings"]

GIBIBYTE = 1024**3
MEBIBYTE = 1024**2


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        name: as on the command line, without the dashes.
        parse: makes a value of a text or a TOML value; raises ValueError with what is wrong.
        default: value when nobody gives one.
        help: one line.
        metavar: what stands for the value in the help.
        short: a one-letter form.
        repeatable: whether it may be given several times.
        plugin: id of the plugin that it belongs to; without that plugin it can't be given.
        application: whether ``create_app`` takes it too.
        secret: whether its value must not be shown.
    """

    name: str
    parse: Callable[[Any], Any]
    default: Any
    help: str
    metavar: str = "TEXT"
    short: str | None = None
    repeatable: bool = False
    plugin: str | None = None
    application: bool = False
    secret: bool = False

    @property
    def key(self) -> str:
        """The name as an identifier: the key in a TOML file, the keyword of ``create_app``."""
        return self.name.replace("-", "_")

    @property
    def variable(self) -> str:
        """The environment variable."""
        return f"SVC_{self.key.upper()}"


def default_workers() -> int:
    """One worker for each core that this process may use, at most four."""
    return max(1, min(4, len(os.sched_getaffinity(0))))


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise ValueError("it must be a text that is not empty")
    return value


def _whole(minimum: int, maximum: int) -> Callable[[Any], int]:
    def parse(value: Any) -> int:
        if isinstance(value, str) and value.strip().isdecimal() and len(value.strip()) <= 18:
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not minimum <= value <= maximum:
            raise ValueError(f"it must be a whole number from {minimum} to {maximum}")
        return value

    return parse


def _flag(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    known = {
        "true": True,
        "1": True,
        "yes": True,
        "on": True,
        "false": False,
        "0": False,
        "no": False,
        "off": False,
    }
    if not isinstance(value, str) or value.strip().lower() not in known:
        raise ValueError("it must be true or false")
    return known[value.strip().lower()]


def _one_of(*choices: str) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        if value not in choices:
            raise ValueError(f"it must be one of {', '.join(choices)}")
        return str(value)

    return parse


def _list(value: Any) -> tuple[str, ...]:
    items = value.split(",") if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ValueError("it must be a list of texts, or a text with commas")
    return tuple(item.strip() for item in items if item.strip())


def _lines(value: Any) -> tuple[str, ...]:
    items = value.splitlines() if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ValueError("it must be a list of texts, or a text with one a line")
    return tuple(item.strip() for item in items if item.strip())


_SIZE = _whole(1, 10**15)

OPTIONS: tuple[Option, ...] = (
    Option(
        "database",
        _text,
        "./data.svcdb",
        "The database; it is made when it is missing.",
        "FILE",
        "D",
        application=True,
    ),
    Option(
        "auth",
        _text,
        "self-contained",
        "How callers are identified: self-contained (self), file://PATH, disabled (false).",
        "MODE",
        application=True,
    ),
    Option(
        "host",
        _text,
        None,
        "Address to listen on. Default: 0.0.0.0; with --auth disabled 127.0.0.1.",
        "ADDRESS",
    ),
    Option("port", _whole(0, 65535), 6830, "Port to listen on; 0 takes a free one.", "N"),
    Option("workers", _whole(1, 512), None, "Worker processes. Default: one per core, at most 4.", "N"),
    Option(
        "worker-class",
        _one_of("http1", "gevent", "gthread"),
        "http1",
        "How workers serve: http1 is svc's own, the others are gunicorn's.",
        "http1|gevent|gthread",
    ),
    Option("tls-cert", _text, None, "Certificate chain in PEM; serves https.", "FILE"),
    Option("tls-key", _text, None, "Private key of the certificate in PEM.", "FILE"),
    Option(
        "plugins",
        _list,
        None,
        "Ids of the plugins that may be used. Default: all that are installed.",
        "ID,...",
        application=True,
    ),
    Option(
        "plugin-option",
        _lines,
        (),
        "Sets a plugin's setting here, before that of the database.",
        "ID.KEY=VALUE",
        repeatable=True,
        application=True,
    ),
    Option(
        "cors-origins",
        _list,
        (),
        "Origins whose pages may call from a browser; * for all.",
        "ORIGIN,...",
        application=True,
    ),
    Option("max-body", _SIZE, 10 * GIBIBYTE, "Most bytes of a stored file.", "BYTES", application=True),
    Option("max-json-body", _SIZE, 32 * MEBIBYTE, "Most bytes of a JSON body.", "BYTES", application=True),
    Option(
        "max-batch",
        _whole(1, 10**6),
        10_000,
        "Most operations of a batch.",
        "N",
        application=True,
    ),
    Option(
        "body-timeout",
        _whole(1, 3600),
        30,
        "Longest wait for a client's next bytes, in seconds.",
        "SECONDS",
        application=True,
    ),
    Option(
        "graceful-timeout",
        _whole(0, 3600),
        30,
        "How long requests may end after a stop, in seconds.",
        "SECONDS",
    ),
    Option(
        "log-format",
        _one_of("pretty", "json"),
        "pretty",
        "Form of the log on standard error.",
        "pretty|json",
        application=True,
    ),
    Option(
        "access-log", _flag, False, "Whether each request is a line of the log.", "BOOL", application=True
    ),
    Option(
        "background",
        _flag,
        True,
        "Whether the server keeps a background process, for views and periodic jobs.",
        "BOOL",
        application=True,
    ),
    Option("join", _text, None, "Joins the cluster of this node.", "URL", plugin="sync"),
    Option("join-token", _text, None, "Root key of the node to join.", "KEY", plugin="sync", secret=True),
    Option("peers", _list, None, "Other nodes to sync with.", "URL,...", plugin="sync"),
    Option("cluster-tls", _flag, None, "Whether peers must be reached by TLS.", "BOOL", plugin="sync"),
    Option("cluster-tls-cert", _text, None, "Certificate shown to peers.", "FILE", plugin="sync"),
    Option("cluster-tls-key", _text, None, "Private key of that certificate.", "FILE", plugin="sync"),
    Option("jwt-expiry", _whole(1, 10**9), None, "Lifetime of a token.", "SECONDS", plugin="auth.self"),
)

_BY_KEY = {option.key: option for option in OPTIONS}


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server was told, checked as far as it can be without opening anything.

    Attributes:
        values: a value for every option, by key.
        given: keys of the options that somebody gave, with where: ``--port``, ``SVC_PORT``, ``port in FILE``.
    """

    values: Mapping[str, Any] = field(repr=False)
    given: Mapping[str, str]

    def __getitem__(self, key: str) -> Any:
        return self.values[key]

    def plugin_options(self) -> list[tuple[Option, str]]:
        """The given options that belong to a plugin, each with where it was given."""
        return [
            (option, self.given[option.key])
            for option in OPTIONS
            if option.plugin and option.key in self.given
        ]


def resolve_settings(
    command_line: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    config: str | None = None,
) -> ServerSettings:
    """Brings together what was given.

    Args:
        command_line: values by key; None and empty tuples count as not given.
        environ: the environment; that of the process when None. ``SVC_CONFIG`` names the file unless
            ``config`` does.
        config: path of a TOML file with one key for each option.

    Raises:
        UsageError: the file can't be read, a key is unknown, or a value is malformed; the message names
            the place.
    """
    environ = os.environ if environ is None else environ
    config = config or environ.get("SVC_CONFIG") or None
    from_file = _read_config(config) if config else {}
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    for option in OPTIONS:
        sources = (
            (f"--{option.name}", command_line.get(option.key)),
            (option.variable, environ.get(option.variable) or None),
            (f"{option.key} in {config}", from_file.get(option.key)),
        )
        values[option.key] = option.default
        for place, value in sources:
            if value is None or value == ():
                continue
            values[option.key] = _parsed(option, place, value)
            given[option.key] = place
            break
    unknown = sorted(set(command_line) - set(_BY_KEY))
    if unknown:
        raise UsageError(f"There is no option {unknown[0]!r}.", field=unknown[0])
    return ServerSettings(values, given)


def _parsed(option: Option, place: str, value: Any) -> Any:
    try:
        return option.parse(value)
    except ValueError as error:
        shown = "" if option.secret else f" {str(value)[:100]!r}"
        raise UsageError(f"{place}:{shown}: {error}.", field=option.name) from None


def _read_config(config: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(Path(config).read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"The configuration file {config} can't be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The configuration file {config} is not valid TOML: {error}.") from None
    found = {key.replace("-", "_"): value for key, value in document.items()}
    for key in found:
        if key not in _BY_KEY:
            raise UsageError(f"The configuration file {config} has an unknown key {key!r}.", field=key)
    return found
