"""An application in the process of the test, for routes that need no real server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike

from svc.database import Database
from svc.paths import Path, format_path, parse_path
from svc.pipeline import Application, Limits, PipelineSettings, create_app
from svc.plugins import Operation, Plugins, initialize
from svc_testing.testing_auth import TestingAuthMode

__all__ = ["PathRights", "serve_in_process"]


@dataclass
class PathRights:
    """Rights of an identity by path prefix: the longest prefix that says something decides.

    Attributes:
        flags: letters of the operations that are allowed, by absolute path.
    """

    flags: Mapping[str, str]

    def allows(self, operation: Operation, path: Path) -> bool:
        """Whether the operation is allowed on the path; silence means no."""
        for length in range(len(path), -1, -1):
            flags = self.flags.get(format_path(path[:length]))
            if flags is not None:
                return operation.letter in flags
        return False

    def allows_below(self, operation: Operation, path: Path) -> bool:
        """Whether the operation is allowed on the path and wherever something is said below it."""
        if not self.allows(operation, path):
            return False
        prefix = format_path(path).rstrip("/") + "/"
        return all(
            operation.letter in flags
            for at, flags in self.flags.items()
            if at != "/" and at.startswith(prefix)
        )

    def leads_on(self, path: Path) -> bool:
        """Whether reading or listing is said to be allowed somewhere below the path."""
        prefix = format_path(path).rstrip("/") + "/"
        return any(
            at != "/" and at.startswith(prefix) and ("r" in flags or "l" in flags)
            for at, flags in self.flags.items()
        )

    def visible_parts(self, operation: Operation, path: Path) -> list[tuple[Path, bool]]:
        """Where the operation is allowed at and below the path, and whether on everything there."""
        prefix = format_path(path).rstrip("/") + "/"
        found = [path] if self.allows(operation, path) else []
        found += [
            parse_path(at)
            for at, flags in self.flags.items()
            if operation.letter in flags and at != "/" and at.startswith(prefix)
        ]
        return [(at, self.allows_below(operation, at)) for at in found]


@contextmanager
def serve_in_process(
    path: str | PathLike[str], plugins: Plugins, limits: Limits | None = None
) -> Iterator[tuple[Application, Database, TestingAuthMode]]:
    """Makes a database with its first plugins, and the application that serves it.

    Args:
        path: of the database.
        plugins: what ``load_with_testing_auth`` gave.
        limits: the limits of the server; None for the usual ones.

    Yields:
        The WSGI application, the database, and the auth mode, whose ``identity`` a test may set at any time.
    """
    database = Database(path)
    assert initialize(database, plugins) == ()
    app = create_app(database, plugins, settings=PipelineSettings(auth="testing", limits=limits or Limits()))
    mode = app.service.auth_mode
    assert isinstance(mode, TestingAuthMode)
    try:
        yield app, database, mode
    finally:
        app.service.close()
