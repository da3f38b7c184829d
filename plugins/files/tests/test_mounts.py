"""Trees beside the files: the hook's page, and what a mount of another plugin shows and refuses."""

from __future__ import annotations

from pathlib import Path

from svc import Database
from svc.plugin import Extension, Version, reference_path
from svc.plugin import Path as Segments
from svc_files import api
from svc_files.api import FILE_MOUNTS, Mount
from svc_files.mounts import mount_at
from svc_testing import HookPagesContract

DOCS = Path(__file__).parents[3] / "docs"


class TestHookPages(HookPagesContract):
    directory = DOCS / "hooks" / "files"
    specifications = api
    driver_id = "files"


class Attic(Mount):
    """Shows the ref ``attic/all`` at ``/.attic``."""

    name = ".attic"

    def version(self, database: Database) -> Version | None:
        entry = database.system().get(reference_path("attic/all"))
        return None if entry is None else database.version_of(entry.hash)

    def origin(self, path: Segments) -> Segments:
        return path[1:]


def test_a_mount_is_known_by_its_first_name_only() -> None:
    attic = Attic()
    mounts = {"other": None, ".attic": Extension(attic, None)}
    assert mount_at(mounts, (".attic", "x")) is attic
    assert mount_at(mounts, ()) is None
    assert mount_at(mounts, ("x", ".attic")) is None
    assert FILE_MOUNTS.contract is Mount
