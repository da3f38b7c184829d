"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, PluginDescriptor, SystemPath
from svc_files.configuration import FilesConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="files",
    version="0.1.0",
    summary="Files, links and blobs over HTTP and at the shell",
    api=(1, 1),
    configuration=FilesConfiguration,
    implementation="svc_files.plugin",
    command_group="Files",
    operations=("svc_files.operations",),
    families="svc_files.api",
    extends=("portal:portal_pages", "portal:entry_actions", "portal:previews"),
    retired=("count_maximum", "maximum_batch", "maximum_body", "maximum_json"),
    response_headers=(
        *("X-Svc-Content-Hash", "X-Svc-Created-At", "X-Svc-Entry-Type", "X-Svc-Path", "X-Svc-Size"),
        *("X-Svc-Symlink-Target", "X-Svc-Updated-At", "X-Svc-Version"),
    ),
    error_codes=("INCOMPLETE",),
    system_paths=(SystemPath("files", BackupRule.SKIP),),
)
