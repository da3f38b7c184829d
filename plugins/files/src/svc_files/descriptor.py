"""The descriptor of the plugin; light, because every start of svc reads it."""

from __future__ import annotations

from svc.plugin import BackupRule, CommandHome, CompletionHome, PluginDescriptor, SystemPath
from svc_files.configuration import FilesConfiguration

__all__ = ["PLUGIN"]

PLUGIN = PluginDescriptor(
    id="files",
    version="0.1.0",
    summary="Files, links and blobs over HTTP and at the shell",
    api=(1, 1),
    configuration=FilesConfiguration,
    adds={
        "views": (
            "svc_files.deleted_view:DeletedFilesView",
            "svc_files.chunk_holders:ChunkHoldersView",
            "svc_files.client_chunks:ClientChunksView",
        ),
        "portal:portal_pages": (
            "svc_files.portal.pages:FilesPage",
            "svc_files.portal.past:PastPage",
            "svc_files.portal.removed:DeletedPage",
        ),
        "portal:entry_actions": (
            "svc_files.portal.actions:RenameAction",
            "svc_files.portal.actions:MoveAction",
            "svc_files.portal.actions:CopyAction",
            "svc_files.portal.actions:PastAction",
            "svc_files.portal.actions:DeletedAction",
        ),
        "portal:previews": (
            "svc_files.portal.previews:PREVIEWS",
            "svc_files.portal.drawn:MarkdownPreview",
            "svc_files.portal.drawn:CodePreview",
        ),
    },
    command_group="Files",
    operations=("svc_files.operations",),
    families="svc_files.api",
    retired=("count_maximum", "maximum_batch", "maximum_body", "maximum_json"),
    response_headers=(
        *("X-Svc-Content-Hash", "X-Svc-Created-At", "X-Svc-Entry-Type", "X-Svc-Path", "X-Svc-Size"),
        *("X-Svc-Symlink-Target", "X-Svc-Updated-At", "X-Svc-Version"),
    ),
    error_codes=("INCOMPLETE",),
    system_paths=(SystemPath("files", BackupRule.SKIP),),
    commands=(
        CommandHome("put", "svc_files.commands.put:put", "Stores one file, or standard input."),
        CommandHome("get", "svc_files.commands.get:get", "Writes one file onto the disk."),
        CommandHome("ls", "svc_files.commands.listing:ls", "Lists a directory, or what matches a pattern."),
        CommandHome("cat", "svc_files.commands.cat:cat", "Writes files to standard output."),
        CommandHome("rm", "svc_files.commands.remove:rm", "Removes files, links and directories."),
        CommandHome("mv", "svc_files.commands.changing:mv", "Moves or renames files, links and directories."),
        CommandHome("cp", "svc_files.commands.changing:cp", "Copies files, links and directories."),
        CommandHome("mkdir", "svc_files.commands.changing:mkdir", "Makes directories."),
        CommandHome("ln", "svc_files.commands.changing:ln", "Makes a symbolic link."),
        CommandHome("deleted", "svc_files.commands.deleted:deleted", "Lists what was deleted."),
        CommandHome("load", "svc_files.commands.load:load", "Imports a directory tree."),
        CommandHome("dump", "svc_files.commands.dump:dump", "Writes a directory tree onto the disk."),
    ),
    completions=(CompletionHome("path", "svc_files.commands.completing:paths"),),
)
