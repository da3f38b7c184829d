"""The pages that describe the plugin say what the code does."""

from __future__ import annotations

from pathlib import Path

from svc_testing import PluginPagesContract
from svc_versions.ancestry import JumpsView
from svc_versions.configuration import VersionsConfiguration
from svc_versions.documents import ForkDocument, SnapshotDocument
from svc_versions.models import Lifecycle, MergeBody, NewFork, NewSnapshot, PathRestoreBody, Retention
from svc_versions.retention import RetentionJob


class TestPages(PluginPagesContract):
    docs = Path(__file__).parents[4] / "docs"
    plugin_id = "versions"
    plugin_page = "plugins/versions.md"
    http_page = "http/versions.md"
    routes_have_rows = False
    configuration = VersionsConfiguration
    bodies = (NewSnapshot, NewFork, MergeBody, PathRestoreBody, Lifecycle, Retention)
    records = (("/versions/snapshots/<name>", SnapshotDocument), ("/versions/forks/<name>", ForkDocument))

    def test_views_and_jobs_are_described(self) -> None:
        page = (self.docs / self.plugin_page).read_text(encoding="utf-8")
        assert f"| `{JumpsView.name}` |" in page
        assert f"| `{RetentionJob.name}` |" in page
