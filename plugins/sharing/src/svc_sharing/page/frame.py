"""What all pages have in common: the document around them, their style, and their header fields."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from html import escape

__all__ = ["document", "page_fields"]

STYLE = """
:root{color-scheme:light dark;--back:#f4f5f7;--card:#fff;--text:#1c2128;--soft:#5b6472;--line:#e1e4e9;
--accent:#0b5fcc;--hover:#f4f7fb}
@media (prefers-color-scheme:dark){:root{--back:#14171c;--card:#1d2128;--text:#e6e9ee;--soft:#9aa4b2;
--line:#313742;--accent:#7db4ff;--hover:#252b34}}
*{box-sizing:border-box}
body{margin:0;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}
main{max-width:56rem;margin:0 auto;padding:2rem 1rem 3rem}
h1{font-size:1.35rem;line-height:1.3;margin:0 0 .25rem;overflow-wrap:anywhere}
p{margin:.25rem 0;color:var(--soft);overflow-wrap:anywhere}
a{color:var(--accent);text-decoration:none}a:hover{text-decoration:underline}
a:focus-visible{outline:2px solid var(--accent);outline-offset:2px;border-radius:3px}
nav{margin:0 0 .75rem;color:var(--soft);overflow-wrap:anywhere}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;margin-top:1rem;overflow:hidden}
.text{padding:1.25rem}
table{width:100%;border-collapse:collapse}
th{font-weight:600;font-size:.85rem;color:var(--soft);text-align:left}
th,td{padding:.6rem 1rem;border-top:1px solid var(--line);vertical-align:top}
thead th{border-top:0}tbody tr:hover{background:var(--hover)}
.name{width:100%;overflow-wrap:anywhere}
.name a{display:flex;gap:.6rem}
.name svg{flex:none;width:1.15rem;height:1.15rem;margin-top:.2rem;fill:none;stroke:currentColor;
stroke-width:1.6;stroke-linejoin:round}
.size,.time,.get{white-space:nowrap;color:var(--soft);font-variant-numeric:tabular-nums}
.size{text-align:right}
.more{margin:1rem 0 0}
footer{margin-top:1.25rem;font-size:.85rem;color:var(--soft)}
@media (max-width:40rem){main{padding:1rem .5rem 2rem}.time,th.time{display:none}th,td{padding:.6rem .7rem}}
"""

_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main>
{body}
</main>
{script}</body>
</html>
"""


def document(title: str, body: str, script: str = "") -> bytes:
    """Returns a whole page; the title is escaped here, the body is HTML.

    ``script`` is JavaScript; ``page_fields`` must be told of it.
    """
    element = f"<script>{script}</script>\n" if script else ""
    return _DOCUMENT.format(title=escape(title), style=STYLE, body=body, script=element).encode()


def page_fields(script: str = "") -> Mapping[str, str]:
    """Returns the header fields of a page: it loads nothing, runs nothing else, and stands in no frame."""
    allowed = f"script-src '{_source(script)}'; connect-src 'self'; " if script else ""
    return {
        "content-type": "text/html; charset=utf-8",
        "content-security-policy": f"default-src 'none'; style-src '{_source(STYLE)}'; {allowed}"
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "x-frame-options": "DENY",
        "cross-origin-opener-policy": "same-origin",
        "cross-origin-resource-policy": "same-origin",
    }


def _source(text: str) -> str:
    """The hash by which a Content-Security-Policy allows an element of a page."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
