"""How the documentation is built: MyST Markdown, the furo theme, and every warning an error."""

from __future__ import annotations

import sys
from configparser import ConfigParser
from pathlib import Path

project = "svc"
author = "the svc project"
copyright = "the svc project, under Apache-2.0"
_setup = ConfigParser()
_setup.read(Path(__file__).parents[1] / "setup.cfg")
release = _setup["metadata"]["version"]
version = ".".join(release.split(".")[:2])

sys.path.insert(0, str(Path(__file__).parent))
extensions = ["myst_parser", "drawing", "reference_pages"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "changes"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = f"svc {release}"
html_favicon = "../plugins/docs/src/svc_docs/static/_api/icon.svg"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
templates_path = ["_templates"]
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/server.html",
        "sidebar/navigation.html",
        "sidebar/scroll-end.html",
    ]
}
