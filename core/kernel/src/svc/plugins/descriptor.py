"""What a plugin says about itself before any of its code is needed.

A descriptor is a value in a light module that an entry point of the group ``svc.plugins`` names. The
kernel reads it at every start, so its module imports nothing but ``svc.plugins`` and ``msgspec``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import force_setattr

from svc.errors import PluginError
from svc.paths import Path

if TYPE_CHECKING:
    from svc.operations import DeclaredOperation

__all__ = [
    "API_VERSION",
    "ENTRY_POINT_GROUP",
    "PLUGIN_SET_GROUP",
    "BackupRule",
    "CommandHome",
    "CompletionHome",
    "PluginDescriptor",
    "StartOption",
    "SystemPath",
]

API_VERSION = 1
"""The plugin API of this kernel. It grows by new hooks and by new arguments of hooks, which no existing
plugin notices; the number changes only when something that plugins use goes away."""

ENTRY_POINT_GROUP = "svc.plugins"
PLUGIN_SET_GROUP = "svc.plugin_sets"

_ID = re.compile(r"[a-z][a-z0-9-]*(\.[a-z][a-z0-9-]*)*")
_FRONT_PAGE = re.compile(r"(/[a-z0-9-]+)+/?")
_IMPLEMENTATION = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*(:[A-Za-z_]\w*)?")
_HOME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")
_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_OPTION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_CODE = re.compile(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*")
_MODE = re.compile(r"[a-z][a-z0-9-]*")
_MAXIMUM_ID_LENGTH = 100
FAMILY_NAME = r"[a-z][a-z0-9_]*"
_FAMILIES = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*\.api")
_EXTENDED = re.compile(rf"{_ID.pattern}:{FAMILY_NAME}")
_FAMILY = re.compile(rf"({_ID.pattern}:)?{FAMILY_NAME}")


class StartOption(Struct, frozen=True):
    """An option of ``svc start`` that sets one setting of the plugin, before what a database says of it.

    It can be given as ``--name``, as the environment variable ``SVC_NAME`` and as a key of the TOML file.
    What it may be follows from the type of the setting; a list of texts may be given with commas.

    Attributes:
        name: without the dashes: lower-case words joined by hyphens.
        help: one line.
        setting: name of the setting; the option's name with underscores when it is None.
        metavar: what stands for the value in the help.
        secret: whether the value must not be repeated in a message.
        check: called at each start with the value, which has the type of the setting. Raises ValueError where
            it can't be used, as with a file that is not there; the message does not show the value.
    """

    name: str
    help: str
    setting: str | None = None
    metavar: str = "TEXT"
    secret: bool = False
    check: Callable[[Any], None] | None = None

    @property
    def key(self) -> str:
        """The name as an identifier: the key in a TOML file."""
        return self.name.replace("-", "_")

    @property
    def target(self) -> str:
        """The name of the setting that it sets."""
        return self.setting or self.key


class CommandHome(Struct, frozen=True):
    """A command below ``svc``: ``svc --help`` shows it, and only its call imports it.

    Attributes:
        name: the word after ``svc``.
        home: where the click command or group is: ``package.module:attribute``.
        summary: its line in the help, as its own help begins.
    """

    name: str
    home: str
    summary: str


class CompletionHome(Struct, frozen=True):
    """How a shell completes the values of parameters of all commands.

    Attributes:
        kind: what they are called: ``user`` is for ``--user``, for the metavar USER, and for NAME of commands
            below ``svc user``.
        home: ``package.module:function``, imported when a shell asks. It is called with the ``Source`` that
            the command line names and with what was typed, and yields values; of those that begin so 200 at
            most are taken. What it raises is dropped, and it has a second.
    """

    kind: str
    home: str


class BackupRule(Enum):
    """What a backup does with a path of the system tree.

    Attributes:
        INCLUDE: a privileged backup holds it, and it is taken from one.
        SECRET: no backup ever holds it, and it is taken from none, whoever asks.
        SKIP: no backup holds it, since it means nothing elsewhere or can be made anew.
    """

    INCLUDE = "include"
    SECRET = "secret"  # noqa: S105 - the name of a rule
    SKIP = "skip"


class SyncRule(Enum):
    """What nodes of a cluster do with a path of the system tree.

    Attributes:
        NONE: each node has its own.
        LAST_WRITER: all have the same; of two changes that did not know of each other, the later counts.
        REMOVAL_WINS: the same, but a removal counts more than any change: what gives rights.
        KEEP_LOSERS: of ``refs/KIND`` alone: all have the same refs; a root that lost gets a name of its own.
    """

    NONE = "none"
    LAST_WRITER = "lww"
    REMOVAL_WINS = "remove_wins"
    KEEP_LOSERS = "keep_losers"


class SystemPath(Struct, frozen=True):
    """A path of the system tree that the plugin owns, with everything below it.

    Attributes:
        path: names joined by slashes, such as ``webhooks`` or ``sessions/*/token``; ``*`` is any one name.
            ``refs/KIND`` are the named refs of a kind, each of which keeps a version.
        backup: what a backup does with it. Of several of the plugin's paths that fit, one that is secret
            decides, else the longest.
        documents: of a kind of refs, the path below which the plugin keeps a document of the same name for
            each: an import takes a ref and its document together, or neither.
        sync: what the nodes of a cluster do with it, when all have the plugin installed. Of several paths
            that fit, the longest decides. What is exchanged has no ``*`` in its path, and no document of more
            than 64 KiB.
    """

    path: str
    backup: BackupRule
    documents: str | None = None
    sync: SyncRule = SyncRule.NONE

    @property
    def parts(self) -> Path:
        """The path as names."""
        return tuple(self.path.split("/"))


class PluginDescriptor(Struct, frozen=True):
    """The name, version and needs of a plugin, and what the kernel must know of it.

    Names that it claims (commands, options, auth modes, error codes, paths of the system tree) are its alone:
    of two plugins that claim one, the later is out of use.

    Attributes:
        id: ``files`` or ``family.name``: lower-case words of letters, digits and hyphens, joined by dots.
            It equals the name of the entry point.
        version: the plugin's own version, shown to people and recorded in databases that enable it.
        summary: one line that says what the plugin adds.
        api: the lowest and the highest ``API_VERSION`` that the plugin works with, both included.
        configuration: the msgspec struct of its settings, or None when there is nothing to set. Fields
            whose type is ``svc.plugins.Secret`` are never shown.
        implementation: ``module`` or ``module:attribute``: where the hook implementations are. A module
            and an instance are used as they are; a class is instantiated without arguments. None where the
            plugin has no hooks.
        adds: what it adds to families of extensions: for each, places as ``module:attribute``. A family of
            the kernel goes by its name, such as ``views`` or ``jobs``; one that a plugin drives as
            ``driver:family``. At a place is a class, which is instantiated without arguments, another
            object, which is used as it is, or a tuple of these. Imported where the family is used.
        operations: modules that declare operations of the plugin; each is served, and called by its commands.
        reload: whether the plugin may be enabled in a running server; False means that it takes part
            from the next start on. Disabling always takes effect at once.
        retired: settings that earlier versions had. A database may still hold them; they are ignored.
        families: the module ``<package>.api`` with the families of extensions that the plugin drives, see
            ``svc.plugins.Family``; None when it drives none.
        extends: the families of other plugins that it adds to by hooks, each as ``driver:family``; those of
            ``adds`` are among them without being said. Where a driver is not in use, what is for it rests.
        needs: ids of plugins that must be enabled wherever this one is.
        options: options of ``svc start`` that set settings of the plugin.
        auth_modes: names and aliases of the auth modes that it registers.
        response_headers: headers of its answers that pages of other origins may read.
        error_codes: codes of its own errors, beyond those in ``svc.errors``.
        system_paths: paths of the system tree that it owns, and what a backup does with each.
        is_of_node: whether each node of a cluster enables it by itself, and has its own settings of it.
        front_page: the path to which browsers are sent that open the address of a server; None: it has none.
        names_users: name of its operation that shows the user of an id, with a ``username``: commands name
            users by it; None: it has none.
        commands: the commands that it adds below ``svc``.
        completions: the values that it completes at a shell, whichever command takes them.
        command_group: the heading above its commands in ``svc --help``: one of ``Files``, ``Versions``,
            ``Search``, ``People``, ``Running it``, ``Clusters`` and ``Plugins``, or one of its own.

    Raises:
        PluginError: a field is not of the form described here.
    """

    id: str
    version: str
    summary: str
    api: tuple[int, int]
    implementation: str | None = None
    configuration: type[Struct] | None = None
    adds: Mapping[str, tuple[str, ...]] = {}
    operations: tuple[str, ...] = ()
    reload: bool = True
    retired: tuple[str, ...] = ()
    families: str | None = None
    extends: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    options: tuple[StartOption, ...] = ()
    auth_modes: tuple[str, ...] = ()
    response_headers: tuple[str, ...] = ()
    error_codes: tuple[str, ...] = ()
    system_paths: tuple[SystemPath, ...] = ()
    is_of_node: bool = False
    front_page: str | None = None
    names_users: str | None = None
    commands: tuple[CommandHome, ...] = ()
    completions: tuple[CompletionHome, ...] = ()
    command_group: str = "More"

    def __post_init__(self) -> None:
        if not _is_text(self.id) or len(self.id) > _MAXIMUM_ID_LENGTH or not _ID.fullmatch(self.id):
            raise PluginError(f"The plugin id {self.id!r} is not lower-case words joined by dots.")
        texts = {"version": self.version, "summary": self.summary, "command_group": self.command_group}
        for name, value in texts.items():
            if not _is_text(value) or not value.strip() or "\n" in value:
                raise PluginError(f"The {name} of plugin {self.id} must be one line of text.")
        if self.implementation is not None and not (
            _is_text(self.implementation) and _IMPLEMENTATION.fullmatch(self.implementation)
        ):
            raise PluginError(
                f"The implementation of plugin {self.id} must be 'module' or 'module:attribute'."
            )
        if not _is_api_range(self.api):
            raise PluginError(f"The api of plugin {self.id} must be a pair (lowest, highest) of numbers.")
        if self.configuration is not None and not _is_struct(self.configuration):
            raise PluginError(f"The configuration of plugin {self.id} must be a subclass of msgspec.Struct.")
        if self.families is not None and not (_is_text(self.families) and _FAMILIES.fullmatch(self.families)):
            raise PluginError(f"The families of plugin {self.id} must be a module named '<package>.api'.")
        self._check_declarations()
        self._check_additions()
        others = (family for family in self.adds if ":" in family and not family.startswith(f"{self.id}:"))
        force_setattr(self, "extends", tuple(dict.fromkeys((*self.extends, *others))))

    def _check_declarations(self) -> None:
        for field, kind, fits in _DECLARATIONS:
            values = getattr(self, field)
            if not isinstance(values, tuple):
                raise PluginError(f"The {field} of plugin {self.id} must be a tuple.")
            for value in values:
                if not isinstance(value, kind) or not fits(value):
                    raise PluginError(f"The {field} of plugin {self.id} hold {value!r}, which is not valid.")
        page = self.front_page
        if page is not None and not (_is_text(page) and _FRONT_PAGE.fullmatch(page)):
            raise PluginError(f"The front_page of plugin {self.id} must be a path such as /{self.id}/.")
        if self.id in self.needs:
            raise PluginError(f"The plugin {self.id} needs itself.")
        settings = () if self.configuration is None else self.configuration.__struct_encode_fields__
        for option in self.options:
            if option.target not in settings:
                raise PluginError(f"The plugin {self.id} has no setting {option.target!r} for its option.")

    def _check_additions(self) -> None:
        if not isinstance(self.adds, Mapping):
            raise PluginError(f"The adds of plugin {self.id} must map families to tuples of places.")
        places: Any
        for family, places in self.adds.items():
            if not _is_text(family) or not _FAMILY.fullmatch(family):
                raise PluginError(f"The plugin {self.id} adds to {family!r}, which is no name of a family.")
            fits = isinstance(places, tuple) and all(_is_text(one) and _HOME.fullmatch(one) for one in places)
            if not fits or not places:
                raise PluginError(
                    f"What the plugin {self.id} adds to {family} must be a tuple of 'module:attribute'."
                )

    @property
    def package(self) -> str:
        """The package that holds what the plugin adds; "" where it adds nothing."""
        added = (place for places in self.adds.values() for place in places)
        commands = (command.home for command in self.commands)
        homes = (self.implementation, *added, *self.operations, *commands)
        return next((home.partition(":")[0].partition(".")[0] for home in homes if home is not None), "")

    def declared_operations(self) -> Iterator[DeclaredOperation[..., Any]]:
        """Yields the operations of the plugin; imports the modules that declare them."""
        from svc.operations import operations_of

        for name in self.operations:
            yield from operations_of(import_module(name))

    @property
    def drivers(self) -> frozenset[str]:
        """Ids of the plugins whose families it extends."""
        return frozenset(item.partition(":")[0] for item in self.extends)


def _is_option(option: StartOption) -> bool:
    texts = (option.name, option.help, option.target, option.metavar)
    if not all(_is_text(text) and text.strip() and "\n" not in text for text in texts):
        return False
    return _OPTION.fullmatch(option.name) is not None


def _is_command(command: CommandHome) -> bool:
    names = all(map(_is_text, (command.name, command.home, command.summary)))
    is_line = names and bool(command.summary.strip()) and "\n" not in command.summary
    return is_line and bool(_OPTION.fullmatch(command.name) and _HOME.fullmatch(command.home))


def _is_completion(completion: CompletionHome) -> bool:
    names = all(map(_is_text, (completion.kind, completion.home)))
    return names and bool(_OPTION.fullmatch(completion.kind) and _HOME.fullmatch(completion.home))


def _is_system_path(owned: SystemPath) -> bool:
    if not _is_rule(owned.backup) or not _is_text(owned.path):
        return False
    if owned.documents is not None:
        is_kind = len(owned.parts) == 2 and owned.parts[0] == "refs"
        if not is_kind or not _is_text(owned.documents) or not _are_names(owned.documents):
            return False
    return _are_names(owned.path) and owned.parts[0] != "*" and _is_exchangeable(owned)


def _is_exchangeable(owned: SystemPath) -> bool:
    """Whether nodes can do with a path what it says."""
    if not _is_sync_rule(owned.sync):
        return False
    if owned.sync is SyncRule.NONE:
        return True
    keeps_losers = owned.sync is SyncRule.KEEP_LOSERS
    return "*" not in owned.parts and keeps_losers == (owned.parts[0] == "refs")


def _are_names(path: str) -> bool:
    return all(name and name.isprintable() and name not in (".", "..") for name in path.split("/"))


def _matches(form: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: form.fullmatch(text) is not None


_DECLARATIONS: tuple[tuple[str, type, Callable[..., bool]], ...] = (
    ("operations", str, _matches(_MODULE)),
    ("extends", str, _matches(_EXTENDED)),
    ("needs", str, _matches(_ID)),
    ("options", StartOption, _is_option),
    ("auth_modes", str, _matches(_MODE)),
    ("response_headers", str, _matches(_HEADER)),
    ("error_codes", str, _matches(_CODE)),
    ("system_paths", SystemPath, _is_system_path),
    ("commands", CommandHome, _is_command),
    ("completions", CompletionHome, _is_completion),
)
"""The fields that declare something, each with the type of its values and what they must be."""


def _is_rule(value: object) -> bool:
    return isinstance(value, BackupRule)


def _is_sync_rule(value: object) -> bool:
    return isinstance(value, SyncRule)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_api_range(value: object) -> bool:
    return (
        isinstance(value, tuple)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value)
        and 1 <= value[0] <= value[1]
    )


def _is_struct(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, Struct)
