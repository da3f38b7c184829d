"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_sharing import models
from svc_sharing.configuration import SharingConfiguration
from svc_sharing.links import LinkRecord
from svc_sharing.pruning import PruneLinksJob
from svc_testing import PluginPagesContract


class TestPages(PluginPagesContract):
    docs = Path(__file__).parents[4] / "docs"
    plugin_id = "sharing"
    needs = ("users", "auth.self")
    plugin_page = "plugins/sharing.md"
    http_page = "http/sharing.md"
    configuration = SharingConfiguration
    bodies = (
        *(models.NewShares, models.OldShares, models.NewLink, models.LinkKey),
        *(models.Share, models.SharedPath, models.ShareLink, models.NewShareLink),
    )
    records = (("/share-links/by-id/", LinkRecord),)

    def test_the_job_is_described(self) -> None:
        page = (self.docs / self.plugin_page).read_text(encoding="utf-8")
        assert f"| `{PruneLinksJob.name}` |" in page
