"""The page that a browser is shown before a code is used: a button, and no script."""

from __future__ import annotations

import html

__all__ = ["PAGE_POLICY", "confirmation_page"]

PAGE_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)
"""What the page may load and who may frame it: nothing and nobody."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex">
<title>Sign in</title>
<style>
body {{ font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 15vh auto 0; padding: 0 1rem; }}
button {{ font: inherit; padding: .5rem 1.5rem; }}
:root {{ color-scheme: light dark; }}
</style>
</head>
<body>
<h1>Sign in</h1>
<p>The link can be used once. The answer holds a token; whoever has it is you until it expires.</p>
<form method="get">
<input type="hidden" name="code" value="{code}">
<input type="hidden" name="confirm" value="true">
<button>Sign in</button>
</form>
</body>
</html>
"""


def confirmation_page(code: str) -> str:
    """Returns the page for a code."""
    return _PAGE.format(code=html.escape(code, quote=True))
