"""All views of one open database."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path as FilePath
from typing import TYPE_CHECKING

from svc.database.view import View
from svc.database.views import ViewReader
from svc.errors import NotFound

if TYPE_CHECKING:
    from svc.database.database import Database

__all__ = ["ViewSet"]


class ViewSet:
    """Views by name; ``bring`` gives views to register when one is asked for that is not registered."""

    def __init__(self, database: Database, directory: FilePath) -> None:
        self.bring: Callable[[], Iterable[View]] | None = None
        self._database = database
        self._directory = directory
        self._readers: dict[str, ViewReader] = {}

    def register(self, view: View, *, replace: bool = False) -> ViewReader:
        """Makes a view known; one of its name that is registered stays, unless ``replace`` is set."""
        reader = self._readers.get(view.name)
        if reader is None:
            reader = self._readers[view.name] = ViewReader(self._database, view, self._directory)
        elif replace:
            reader.use(view)
        return reader

    def get(self, name: str) -> ViewReader:
        """Returns a view; ``NotFound`` if none of this name is registered."""
        if name not in self._readers:
            self._bring()
        reader = self._readers.get(name)
        if reader is None:
            raise NotFound(f"There is no view named {name}.")
        return reader

    def all(self) -> dict[str, ViewReader]:
        """Returns all views by name."""
        self._bring()
        return dict(self._readers)

    def _bring(self) -> None:
        bring, self.bring = self.bring, None
        if bring is not None:
            for view in bring():
                self.register(view)

    def close(self) -> None:
        """Closes all views."""
        for reader in self._readers.values():
            reader.close()

    def remove_other_formats(self) -> None:
        """Removes what programs with other formats left; nobody else may have the database open."""
        for reader in self._readers.values():
            reader.remove_other_formats()
