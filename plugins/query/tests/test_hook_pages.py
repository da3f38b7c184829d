"""The pages about the driver's hooks say what its specifications say, and their samples load."""

from __future__ import annotations

from pathlib import Path

import svc_query.api

from svc_testing import HookPagesContract


class TestPages(HookPagesContract):
    directory = Path(__file__).parents[3] / "docs" / "hooks" / "query"
    specifications = svc_query.api
    driver_id = "query"
