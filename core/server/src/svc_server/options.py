"""The options of ``svc start``: one table, from which come the command, the environment and the file.

The command line comes before the environment (``SVC_<OPTION>``), that before the file (``--config``), that
before the default. Descriptors of the plugins that may be used add options of their own.
"""

from __future__ import annotations

import errno
import os
import stat
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from svc.errors import UsageError
from svc.limits import MAXIMUM_TREE_ENTRIES
from svc.pipeline.client_address import parse_networks
from svc.plugins import load_descriptors
from svc.plugins.configuration import FLAGS, option_settings

__all__ = [
    "OPTIONS",
    "Option",
    "PluginValue",
    "ServerSettings",
    "allowed_plugins",
    "default_workers",
    "options_of_plugins",
    "resolve_settings",
]

GIBIBYTE = 1024**3
MEBIBYTE = 1024**2
_MOST_CONFIG_BYTES = MEBIBYTE


@dataclass(frozen=True, slots=True)
class Option:
    """One option.

    Attributes:
        name: as on the command line, without the dashes.
        parse: makes a value of a text or a TOML value; raises ValueError with what is wrong.
        metavar: what stands for the value in the help.
        short: a one-letter form.
        repeatable: whether it may be given several times.
        plugin: id of the plugin whose descriptor declares it; None for the server's own.
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


def _file(value: Any) -> str:
    text = _text(value)
    if text.lower().startswith(("http://", "https://")):
        raise ValueError(
            "it must be the path of a database file or the URL of a storage backend, not a server's"
        )
    return text


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
    if not isinstance(value, str) or value.strip().lower() not in FLAGS:
        raise ValueError("it must be true or false")
    return FLAGS[value.strip().lower()]


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


def _networks(value: Any) -> tuple[str, ...]:
    return tuple(str(network) for network in parse_networks(_list(value)))


def _lines(value: Any) -> tuple[str, ...]:
    items = value.splitlines() if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise ValueError("it must be a list of texts 'id.key=value', or a text with one a line")
    return tuple(item.strip() for item in items if item.strip())


_SIZE = _whole(1, 10**15)

OPTIONS: tuple[Option, ...] = (
    Option(
        "database",
        _file,
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
        "How callers are identified: an auth mode of a plugin, with ://ARGUMENT where it takes one.",
        "MODE",
        application=True,
    ),
    Option(
        "host",
        _text,
        None,
        "Address to listen on. Default: 0.0.0.0; 127.0.0.1 with an auth mode that lets everybody in.",
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
        secret=True,
    ),
    Option(
        "cors-origins",
        _list,
        (),
        "Origins whose pages may call from a browser; * for all.",
        "ORIGIN,...",
        application=True,
    ),
    Option(
        "trusted-proxies",
        _networks,
        (),
        "Proxies whose X-Forwarded-For says who the client is: addresses, or networks such as 10.0.0.0/8.",
        "ADDRESS,...",
        application=True,
    ),
    Option(
        "hsts",
        _whole(0, 10**9),
        0,
        "Seconds for which browsers come by TLS alone (Strict-Transport-Security); 0: nothing is said.",
        "SECONDS",
        application=True,
    ),
    Option(
        "max-body",
        _SIZE,
        10 * GIBIBYTE,
        "Most bytes of a stored file, however it is made.",
        "BYTES",
        application=True,
    ),
    Option(
        "max-json-body",
        _SIZE,
        32 * MEBIBYTE,
        "Most bytes of a JSON body; most routes take 1 MiB.",
        "BYTES",
        application=True,
    ),
    Option(
        "max-batch",
        _whole(1, 10**6),
        10_000,
        "Most operations of a batch, and most paths or files that one request names.",
        "N",
        application=True,
    ),
    Option(
        "max-tree-entries",
        _whole(1, 10**12),
        MAXIMUM_TREE_ENTRIES,
        "Most files, links and directories of a tree.",
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
        "min-rate",
        _whole(0, 10**9),
        100,
        "Bytes a second that a client must send or take at least; 0 for any.",
        "BYTES",
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
)

OptionSource = Callable[[Sequence[str] | None], tuple[Option, ...]]
"""Gives the options of the plugins that may be used, by the ids of those (None for all)."""


class PluginValue(NamedTuple):
    """What somebody gave for an option of a plugin, and where, as in ``ServerSettings.given``."""

    plugin_id: str
    place: str
    settings: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What a server was told, checked as far as it can be without opening anything.

    ``values`` has one for every option of the server, by key. ``given`` are the keys of the options that
    somebody gave, with where: ``--port``, ``SVC_PORT``, ``port in FILE``.
    """

    values: Mapping[str, Any] = field(repr=False)
    given: Mapping[str, str]
    of_plugins: tuple[PluginValue, ...] = field(default=(), repr=False)

    def __getitem__(self, key: str) -> Any:
        return self.values[key]


def options_of_plugins(allowed: Sequence[str] | None) -> tuple[Option, ...]:
    """Returns the options that the plugins declare which may be used; imports their descriptors."""
    return tuple(
        Option(
            option.name,
            partial(option_settings, descriptor, option),
            None,
            option.help,
            option.metavar,
            plugin=descriptor.id,
            application=True,
            secret=option.secret,
        )
        for descriptor in load_descriptors(allowed)
        for option in descriptor.options
    )


def resolve_settings(
    command_line: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    config: str | None = None,
    options: OptionSource = options_of_plugins,
) -> ServerSettings:
    """Brings together what was given.

    Args:
        command_line: values by key; None and empty tuples count as not given.
        environ: that of the process when None. ``SVC_CONFIG`` names the file unless ``config`` does.
        config: path of a TOML file with one key for each option.
        options: gives the options of plugins.

    Raises UsageError, which names the place, for an unknown key, a bad value or a file that can't be read.
    """
    sources = _Sources.of(command_line, environ, config)
    values: dict[str, Any] = {}
    given: dict[str, str] = {}
    of_plugins: list[PluginValue] = []
    for option in OPTIONS:
        found = sources.find(option)
        values[option.key] = option.default if found is None else _parsed(option, *found)
        if found is not None:
            given[option.key] = found[0]
    added = options(values["plugins"])
    for option in added:
        found = sources.find(option)
        if found is not None:
            assert option.plugin is not None
            given[option.key] = found[0]
            of_plugins.append(PluginValue(option.plugin, found[0], _parsed(option, *found)))
    sources.refuse_unknown({option.key for option in (*OPTIONS, *added)})
    return ServerSettings(values, given, tuple(of_plugins))


def allowed_plugins(
    command_line: Mapping[str, Any], environ: Mapping[str, str] | None = None, config: str | None = None
) -> tuple[str, ...] | None:
    """Returns the plugins that may be used, None for all that are installed; see ``resolve_settings``."""
    (option,) = [option for option in OPTIONS if option.key == "plugins"]
    found = _Sources.of(command_line, environ, config).find(option)
    allowed: tuple[str, ...] | None = option.default if found is None else _parsed(option, *found)
    return allowed


@dataclass(frozen=True, slots=True)
class _Sources:
    command_line: Mapping[str, Any]
    environ: Mapping[str, str]
    file: Mapping[str, Any]
    file_name: str

    @classmethod
    def of(
        cls, command_line: Mapping[str, Any], environ: Mapping[str, str] | None, config: str | None
    ) -> _Sources:
        environ = os.environ if environ is None else environ
        config = config or environ.get("SVC_CONFIG") or ""
        return cls(command_line, environ, _read_config(config) if config else {}, config)

    def find(self, option: Option) -> tuple[str, Any] | None:
        """The first place that has an option, with the value there; None when it is nowhere."""
        places = (
            (f"--{option.name}", self.command_line.get(option.key)),
            (option.variable, self._in_environment(option)),
            (f"{option.key} in {self.file_name}", self.file.get(option.key)),
        )
        return next(((place, value) for place, value in places if value is not None and value != ()), None)

    def _in_environment(self, option: Option) -> str | None:
        """An empty variable counts as absent; but no other database is meant by one without a name."""
        value = self.environ.get(option.variable)
        return value if value or option.key == "database" else None

    def refuse_unknown(self, known: Collection[str]) -> None:
        for key in self.file:
            if key not in known:
                raise UsageError(
                    f"The configuration file {self.file_name} has an unknown key {key!r}.", field=key
                )
        for key in self.command_line:
            if key not in known:
                raise UsageError(f"There is no option {key!r}.", field=key)


def _parsed(option: Option, place: str, value: Any) -> Any:
    try:
        return option.parse(value)
    except ValueError as error:
        shown = "" if option.secret else f" {str(value)[:100]!r}:"
        raise UsageError(f"{place}:{shown} {error}.", field=option.name) from None


def _read_config(config: str) -> dict[str, Any]:
    try:
        document = tomllib.loads(_read_regular(config).decode("utf-8"))
    except OSError as error:
        raise UsageError(f"The configuration file {config} can't be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"The configuration file {config} is not valid TOML: {error}.") from None
    except RecursionError:
        raise UsageError(f"The configuration file {config} is nested too deep.") from None
    values: dict[str, Any] = {}
    for name, value in document.items():
        key = name.replace("-", "_")
        if key in values:
            raise UsageError(f"The configuration file {config} has the key {key!r} twice.", field=key)
        values[key] = value
    return values


def _read_regular(config: str) -> bytes:
    """Reads a file whole; a running server does so at each SIGHUP, and must neither wait nor grow."""
    # A pipe without a writer would be waited for.
    descriptor = os.open(config, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise UsageError(f"The configuration file {config} is not a regular file.")
        content = file.read(_MOST_CONFIG_BYTES + 1)
    if len(content) > _MOST_CONFIG_BYTES:
        raise UsageError(f"The configuration file {config} has more than {_MOST_CONFIG_BYTES} bytes.")
    return content
