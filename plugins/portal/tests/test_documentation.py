"""The pages about the plugin say what the code does, and the plugin that they show works as it is there."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import svc_portal.api
from falcon.testing import TestClient
from svc_portal.testing.contract import OWN_FORM, PageReader

from svc_testing import (
    DistributionFactory,
    HookPagesContract,
    PluginPagesContract,
    load_with_testing_auth,
    serve_in_process,
)
from svc_testing.hook_pages import files_of_page

DOCS = Path(__file__).parents[3] / "docs"
FILES = files_of_page(DOCS / "plugins" / "writing-a-portal-page.md")


class TestHookPages(HookPagesContract):
    directory = DOCS / "hooks" / "portal"
    specifications = svc_portal.api
    driver_id = "portal"


class TestPages(PluginPagesContract):
    docs = DOCS
    plugin_id = "portal"
    plugin_page = "plugins/portal.md"
    http_page = "http/portal.md"
    api = svc_portal.api


def install(factory: DistributionFactory) -> None:
    """Installs the plugin of the page."""
    modules = {
        name.removesuffix(".py").replace("/", "."): text
        for name, text in FILES.items()
        if name.startswith("acme_shelf/") and name.endswith(".py")
    }
    entry_points = {"acme.shelf": "acme_shelf.descriptor:PLUGIN"}
    place = factory.install("acme-shelf", modules=modules, entry_points=entry_points)
    template = place / "acme_shelf" / "templates" / "shelf.html"
    template.parent.mkdir()
    template.write_text(FILES["acme_shelf/templates/shelf.html"], encoding="utf-8")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[TestClient]:
    """A server with that plugin."""
    factory = DistributionFactory(tmp_path / "acme")
    install(factory)
    plugins = load_with_testing_auth("portal", "acme.shelf")
    with serve_in_process(tmp_path / "x.svcdb", plugins) as (app, _, _):
        yield TestClient(app)
    factory.close()


def test_the_page_of_the_example_works(client: TestClient) -> None:
    page = client.simulate_get("/portal/shelf")
    assert page.status_code == 200
    assert PageReader(page.text).headings == ["Shelf"]
    assert '<a href="/portal/shelf" aria-current="page">Shelf</a>' in page.text
    added = client.simulate_post("/portal/shelf", body="title=Emma+%3Cb%3E", headers=OWN_FORM)
    assert (added.status_code, added.headers["location"]) == (303, "/portal/shelf")
    cookie = f"svc_message={added.cookies['svc_message'].value}"
    page = client.simulate_get("/portal/shelf", headers={"Cookie": cookie})
    assert "<p>Emma &lt;b&gt; stands on the shelf.</p>" in page.text
    assert "<li>Emma &lt;b&gt;</li>" in page.text
    # It is said once.
    assert page.cookies["svc_message"].value == ""


def test_an_error_of_an_operation_is_a_page(client: TestClient) -> None:
    answer = client.simulate_post("/portal/shelf", body="title=", headers=OWN_FORM)
    assert answer.status_code == 400
    assert "The field title is empty." in answer.text


def test_the_tests_of_the_example_pass(tmp_path: Path) -> None:
    factory = DistributionFactory(tmp_path / "acme", in_process=False)
    install(factory)
    (tmp_path / "test_shelf.py").write_text(FILES["tests/test_shelf.py"], encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", tmp_path, tmp_path],
        env=factory.environment(os.environ),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
