"""How the documentation is built: MyST Markdown, the furo theme, and every warning an error."""

from __future__ import annotations

from importlib.metadata import version as distribution_version

project = "svc"
author = "the svc project"
copyright = "the svc project, under Apache-2.0"
release = distribution_version("svc")
version = ".".join(release.split(".")[:2])

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4

autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = False

html_theme = "furo"
html_title = f"svc {release}"
html_copy_source = False
html_show_sourcelink = False
