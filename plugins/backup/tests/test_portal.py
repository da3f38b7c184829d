"""The pages of backups: the list, exports, and an import after a preview."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient
from svc_portal.testing import PortalPageContract, send_form

from svc.plugin import Database
from svc_backup.portal.backups import BackupPage, BackupsPage


class OfBackups(PortalPageContract):
    plugin_id = "backup"

    def fill(self, database: Database) -> None:
        self.database = database
        self.directory = Path(database.path).parent / "backups"
        with database.transaction() as changes:
            changes.put(("a",), b"before")


class TestBackupsPage(OfBackups):
    urls = ("backups",)
    forms = (("backups", "action=write&output=x.svcdb"), ("backups", "action=write&output=../x"))

    @pytest.fixture
    def extension(self) -> BackupsPage:
        return BackupsPage()

    def test_an_export_is_saved_by_the_browser(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        saved = send_form(client, "backups", "action=save")
        assert saved.status_code == 200
        assert saved.headers["content-disposition"].startswith("attachment;")
        assert len(saved.content) == int(saved.headers["content-length"])
        refused = send_form(client, "backups", "action=save&snapshot=none")
        assert refused.status_code == 303

    def test_files_that_are_no_backups_and_links_are_told_apart(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        (self.directory / "deep" / "er").mkdir(parents=True)
        (self.directory / "deep" / "er" / "<b>.txt").write_text("x")
        (self.directory / ".hidden").write_text("x")
        (self.directory / "link.svcdb").symlink_to("/etc/passwd")
        listed = client.simulate_get("/versions/backups").json
        assert [(one["name"], one["kind"]) for one in listed["files"]] == [("deep/er/<b>.txt", None)]
        page = client.simulate_get("/portal/backups").text
        assert "deep/er/&lt;b&gt;.txt" in page
        assert client.simulate_get("/versions/backups/link.svcdb").status_code == 400
        assert client.simulate_get("/versions/backups/none.svcdb").status_code == 404


class TestBackupPage(OfBackups):
    urls = ("backups/x.svcdb",)

    @pytest.fixture
    def extension(self) -> BackupPage:
        return BackupPage()

    @pytest.fixture(autouse=True)
    def written(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        assert send_form(client, "backups", "action=write&output=x.svcdb").status_code == 303

    def test_an_import_says_before_what_it_does_and_can_be_taken_back(
        self, served: tuple[TestClient, Any]
    ) -> None:
        client, _ = served
        assert "this version is HEAD already" in client.simulate_get("/portal/backups/x.svcdb").text
        with self.database.transaction() as changes:
            changes.put(("a",), b"after")
        head = self.database.head().root
        preview = client.simulate_get("/versions/backups/x.svcdb").json
        assert (preview["held"], preview["head"], preview["applies"]) == (True, False, True)
        assert (preview["files"], preview["total_size"]) == (1, 6)
        assert preview["file"]["kind"] == "export"
        assert "it could become HEAD" in client.simulate_get("/portal/backups/x.svcdb").text
        assert send_form(client, "backups/x.svcdb", "action=import").status_code == 303
        assert self.database.head().root == head
        done = send_form(client, "backups/x.svcdb", "action=import&promote=1")
        assert done.status_code == 303
        assert self.database.head().root.hex() == preview["version"]
        cookie = done.headers["set-cookie"].partition(";")[0]
        page = client.simulate_get("/portal/backups/x.svcdb", headers={"Cookie": cookie}).text
        assert f'name="hash" value="{head.hex()}"' in page
        assert send_form(client, "backups/x.svcdb", f"action=promote&hash={head.hex()}").status_code == 303
        assert self.database.head().root == head

    def test_a_damaged_file_is_refused(self, served: tuple[TestClient, Any]) -> None:
        client, _ = served
        file = self.directory / "x.svcdb"
        file.write_bytes(file.read_bytes()[:-10])
        assert client.simulate_get("/portal/backups/x.svcdb").status_code == 400
