"""The link in the portal keeps the contract of its family."""

from __future__ import annotations

import pytest
from svc_docs.portal import DocumentationLink
from svc_portal.testing import PortalLinkContract


class TestDocumentationLink(PortalLinkContract):
    plugin_id = "docs"

    @pytest.fixture
    def extension(self) -> DocumentationLink:
        return DocumentationLink()
