"""Lists of settings, each in a file of its own below ``/.config``: ``{"schedules": [{"id": ...}, ...]}``.

The file is the truth, each change of it a compare-and-swap. It may have come by a way that checks nothing, as
a restore does: what can't be read of it is left out, and nobody writes it again before it is valid.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

import msgspec

from svc.database.attempts import attempt
from svc.database.json_records import same_content
from svc.errors import AlreadyExists, Conflict, InvalidInput, NotFound, SvcError
from svc.paths import SERVER_CONFIGURATION, Path, format_path

if TYPE_CHECKING:
    from svc.database.database import Database
    from svc.database.transaction import Transaction
    from svc.database.version import Version
    from svc.tree import Entry

__all__ = ["ConfigurationList", "at_field"]

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Item(Protocol):
    """A setting: a struct with an id."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=Item)


def _ignore(thing: object) -> None:
    del thing


class ConfigurationList(Generic[T]):
    """Settings of one kind as the files of databases hold them; holds nothing itself.

    Args:
        name: the file's name, such as ``cron.json``.
        noun: what one is, in the singular; with an ``s`` it is the member of the file that has the list.
        form: the struct of one; its ``id`` is unique in the file.
        maximum: most of them in a file.

    Attributes:
        path: the file.
        maximum_bytes: of the file.
    """

    maximum_bytes = 1 << 20

    def __init__(self, name: str, noun: str, form: type[T], *, maximum: int = 1_000) -> None:
        self.path: Path = (SERVER_CONFIGURATION, name)
        self._turns = threading.Lock()
        self._noun, self._member, self._form, self._maximum = noun, f"{noun}s", form, maximum
        fields = [(self._member, list[form])]  # type: ignore[valid-type]  # known when it runs
        self._file: Any = msgspec.defstruct(f"{noun}_file", fields, frozen=True, forbid_unknown_fields=True)

    def parse(self, content: bytes, check: Callable[[T], object]) -> list[T]:
        """Returns the settings of a file that is wholly valid.

        Args:
            content: the file.
            check: raises InvalidInput for a setting that makes no sense.

        Raises:
            InvalidInput: ``field`` says where.
        """
        try:
            items: list[T] = getattr(msgspec.json.decode(content, type=self._file), self._member)
        except msgspec.ValidationError as error:
            what, _, where = str(error).partition(" - at `$")
            field = where.rstrip("`").removeprefix(".") or self._member
            raise InvalidInput(f"{what.replace('`', chr(39))} (at {field}).", field=field) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise InvalidInput("The file is not valid JSON.", field=self._member) from None
        if len(items) > self._maximum:
            raise InvalidInput(
                f"A database has at most {self._maximum:,} {self._member}.",
                field=self._member,
                limit=self._maximum,
            )
        seen: set[str] = set()
        for number, item in enumerate(items):
            with at_field(f"{self._member}[{number}]."):
                check_id(item.id)
                check(item)
                if item.id in seen:
                    raise InvalidInput(f"The id {item.id!r} is there twice.", field="id")
            seen.add(item.id)
        return items

    def stored(
        self,
        version: Version,
        check: Callable[[T], object] = _ignore,
        note: Callable[[str], None] = _ignore,
    ) -> list[T]:
        """Returns the settings of a version, in the order of the file; what can't be read is left out.

        ``check`` as for ``parse``; ``note`` is called with a sentence for each part that is left out.
        """
        entry = version.get(self.path)
        return [] if entry is None else self._readable(self._content(version, entry), check, note)

    def find(self, items: Iterable[T], item_id: str) -> T:
        """Returns the setting of an id, or raises NotFound."""
        for item in items:
            if item.id == item_id:
                return item
        raise NotFound(f"There is no {self._noun} {item_id[:100]!r}.", id=item_id[:100])

    def read(self, version: Version) -> bytes:
        """Returns the file as it is, or raises NotFound."""
        entry = version.get(self.path)
        if entry is None:
            raise NotFound(f"There is no {format_path(self.path)}.", path=format_path(self.path))
        return version.read_all(entry)

    def add(
        self,
        database: Database,
        item: T,
        *,
        actor: str | None,
        also: Callable[[Transaction], None] = _ignore,
    ) -> None:
        """Adds a setting that was checked, and does ``also`` in the same commit. Blocks.

        Raises:
            AlreadyExists: there is one of its id.
        """
        check_id(item.id)

        def change(present: list[T], changes: Transaction) -> list[T]:
            if any(one.id == item.id for one in present):
                raise AlreadyExists(f"There is a {self._noun} {item.id!r} already.", id=item.id)
            also(changes)
            return [*present, item]

        self.change(database, change, message=f"add {self._noun} {item.id}", actor=actor)

    def replace(
        self,
        database: Database,
        item_id: str,
        changed: Callable[[T, Transaction], T | None],
        *,
        verb: str = "change",
        actor: str | None,
    ) -> T:
        """Replaces a setting by what ``changed`` makes of it; None removes it. Blocks.

        Returns:
            What is there now; of one that was removed, what was there.

        Raises:
            NotFound: there is none of this id.
        """
        result: list[T] = []

        def change(present: list[T], changes: Transaction) -> list[T]:
            old = self.find(present, item_id)
            new = changed(old, changes)
            result[:] = [old if new is None else new]
            items = (new if one.id == item_id else one for one in present)
            return [one for one in items if one is not None]

        self.change(database, change, message=f"{verb} {self._noun} {item_id}", actor=actor)
        return result[0]

    def change(
        self,
        database: Database,
        change: Callable[[list[T], Transaction], list[T]],
        *,
        message: str,
        actor: str | None,
    ) -> None:
        """Changes the whole list in one commit; called again where another was quicker. Blocks.

        Raises:
            Conflict: the file is not valid as it is, or changes all the time.
        """

        def work() -> None:
            version = database.at()
            entry = version.get(self.path)
            present = [] if entry is None else self._strictly(self._content(version, entry))
            with database.transaction(actor=actor, message=message) as changes:
                new = self._file(change(present, changes))
                content = msgspec.json.format(msgspec.json.encode(new), indent=2)
                changes.put(
                    self.path, content, content_type="application/json", condition=same_content(entry)
                )

        # One after another in a process: each would take the file from under all others.
        with self._turns:
            attempt(work, f"The file of {self._member}")

    def _content(self, version: Version, entry: Entry) -> bytes:
        """The file; nothing that is valid in place of one that is too large to be read for each request."""
        return version.read_all(entry) if entry.size <= self.maximum_bytes else b""

    def _readable(self, content: bytes, check: Callable[[T], object], note: Callable[[str], None]) -> list[T]:
        where = format_path(self.path)
        try:
            raw = msgspec.json.decode(content)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            note(f"{where} is not valid JSON: no {self._noun} runs")
            return []
        items = raw.get(self._member) if isinstance(raw, dict) else None
        if not isinstance(items, list):
            note(f"{where} has no list of {self._member}: none runs")
            return []
        found: dict[str, T] = {}
        for number, item in enumerate(items[: self._maximum]):
            try:
                setting = msgspec.convert(item, self._form)
                check_id(setting.id)
                check(setting)
            except (msgspec.ValidationError, SvcError) as error:
                note(f"{self._noun} {number} of {where} does not run: {error}")
                continue
            found.setdefault(setting.id, setting)
        return list(found.values())

    def _strictly(self, content: bytes) -> list[T]:
        """The settings of a file that is to be written again: nothing of it may get lost."""
        faults: list[str] = []
        found = self._readable(content, _ignore, faults.append)
        if faults:
            raise Conflict(f"{faults[0][:1].upper()}{faults[0][1:]}; store a valid file first.")
        return found


def check_id(item_id: str) -> None:
    """Refuses an id that is none: InvalidInput."""
    if not _ID.fullmatch(item_id):
        raise InvalidInput(
            "An id has 1 to 100 letters, digits, dots, hyphens and underscores, and begins with a letter or "
            "a digit.",
            field="id",
        )


@contextmanager
def at_field(place: str) -> Iterator[None]:
    """Puts a place, such as ``schedules[3].``, before the field that an error names."""
    try:
        yield
    except SvcError as error:
        field = error.details.get("field", "")
        if field != place.rstrip("."):
            error.details["field"] = f"{place}{field}".rstrip(".")
        raise
