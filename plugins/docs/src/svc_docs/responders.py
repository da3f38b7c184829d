"""The responders: files with everything that HTTP knows about caches, and texts that depend on the server."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

import falcon

from svc.errors import NotFound
from svc.plugin import (
    PluginContext,
    SvcRequest,
    describe_operations,
    encode_json,
    run_blocking,
    send_content,
    set_fields,
)
from svc_docs.assets import NOTE_PLACE, Asset, asset_note, find_asset, read_manifest
from svc_docs.page_list import page_list

__all__ = [
    "list_pages",
    "read_openapi",
    "redirect_to_front_page",
    "show_asset",
    "show_front_page",
    "show_request_page",
    "show_skill",
]


def redirect_to_front_page(_req: SvcRequest, resp: falcon.Response) -> None:
    """The links of pages are relative to the directory."""
    resp.status = falcon.HTTP_308
    resp.location = "/docs/"


def show_front_page(req: SvcRequest, resp: falcon.Response) -> None:
    """Where no pages were built, it says how to build them."""
    _send_asset(req, resp, "")


def show_request_page(req: SvcRequest, resp: falcon.Response) -> None:
    """The page whose script reads the OpenAPI document."""
    _send_asset(req, resp, "api.html")


def show_skill(req: SvcRequest, resp: falcon.Response) -> None:
    """The same on every server."""
    _send_asset(req, resp, "SKILL.md")


def show_asset(req: SvcRequest, resp: falcon.Response, asset: str) -> None:
    """Whatever else there is."""
    _send_asset(req, resp, asset)


def list_pages(req: SvcRequest, resp: falcon.Response) -> None:
    """Made anew each time: plugins may have been enabled or disabled."""
    text = page_list(read_manifest(), _plugin(req).is_enabled)
    _send_bytes(req, resp, text.encode(), "text/plain; charset=utf-8")


def read_openapi(req: SvcRequest, resp: falcon.Response) -> None:
    """As the operation answers it, and with an entity tag."""
    _send_bytes(req, resp, encode_json(describe_operations(req.context)) + b"\n", "application/json")


def _send_asset(req: SvcRequest, resp: falcon.Response, path: str) -> None:
    asset = find_asset(path)
    if asset is None:
        raise NotFound("There is no such page.")
    if asset.policy is not None:
        set_fields(resp, _page_fields(asset.policy))
    note = b""
    if asset.plugin is not None and not _plugin(req).is_enabled(asset.plugin):
        note = asset_note(asset.plugin)
    send_content(
        req,
        resp,
        size=asset.size + len(note),
        etag=asset.etag + ("-note" if note else ""),
        updated_ms=None,
        content_type=asset.content_type,
        read=lambda start, length: _read(asset, note, start, length),
    )


def _content_of(file: Path) -> bytes:
    """The bytes of a file of the package, the same for all who read it, however slowly."""
    return _read_once(file, file.stat().st_mtime_ns)


@lru_cache(maxsize=32)
def _read_once(file: Path, _changed_ns: int) -> bytes:
    return file.read_bytes()


def _read(asset: Asset, note: bytes, start: int, length: int) -> Iterator[bytes]:
    content = run_blocking(_content_of, asset.file)
    if note:
        content = content.replace(NOTE_PLACE, NOTE_PLACE + note, 1)
    yield content[start : start + length]


def _send_bytes(req: SvcRequest, resp: falcon.Response, content: bytes, content_type: str) -> None:
    send_content(
        req,
        resp,
        size=len(content),
        etag=hashlib.sha256(content).hexdigest(),
        updated_ms=None,
        content_type=content_type,
        read=lambda start, length: iter([content[start : start + length]]),
    )


def _page_fields(policy: str) -> dict[str, str]:
    return {
        "content-security-policy": policy,
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
    }


def _plugin(req: SvcRequest) -> PluginContext:
    plugin = req.context.plugin
    assert plugin is not None
    return plugin
