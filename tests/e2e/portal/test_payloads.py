"""Whatever is stored, named or filled in does nothing on a page: no script runs, and no policy is broken."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from playwright.sync_api import Browser, Page, expect

from long_runs import Extent
from payloads import CONTENTS, NAMES, PAYLOADS
from portal_pages import Opener, Portal, kept_by_browser
from svc_testing import start_server

STEP = 1 if Extent("PAGES").scale > 1 else 4
"""Of the pages and forms every so many one is looked at; all of them in a long run."""
PLUGINS = (
    *("users", "auth.self", "sharing", "files", "history", "versions", "events", "events.sse", "metrics"),
    *("tasks", "task.gc", "task.verify", "backup", "task.backup"),
    *("query", "index.exact", "index.trigram", "index.fulltext", "parsers", "portal"),
)
INDEXES = '{"glob": "**/*", "indexes": [{"name": "text", "type": "fulltext"}]}'
IMG, SCRIPT = "<img src=x onerror=alert(4)>", "<script>alert(1)<script>"
LATER = "<img src=x onerror=alert(60)>"
FORMS = {
    "people": ("add", {"username": PAYLOADS[0], "email": PAYLOADS[3], "tags": PAYLOADS[16]}),
    "groups": ("add", {"name": PAYLOADS[16]}),
    "keys": ("make", {"label": PAYLOADS[3], "rules": PAYLOADS[0], "days": PAYLOADS[17]}),
    "tasks/new/backup": (
        "start",
        {"argument-backup_dir": PAYLOADS[0], "argument-retention_count": PAYLOADS[16]},
    ),
    "tasks/new/gc": ("schedule", {"id": PAYLOADS[3], "schedule": PAYLOADS[0]}),
    "plugins/auth.self": ("save", {"setting-jwt_expiry": PAYLOADS[16]}),
    "backups": ("write", {"output": PAYLOADS[3], "snapshot": PAYLOADS[0]}),
    "files/names": ("mkdir", {"name": PAYLOADS[0]}),
}


@pytest.fixture(scope="module")
def portal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Portal]:
    path = tmp_path_factory.mktemp("payloads") / "payloads.svcdb"
    options = ("--auth", "self-contained", "--access-log", "true", "--background", "true")
    with start_server(path, *options, plugins=PLUGINS) as server:
        portal = Portal(server, next(word for word in server.output.split() if word.startswith("svc_k_")))
        fill(portal)
        yield portal


def fill(portal: Portal) -> None:
    portal.put({"/names/.svc-config/indexes.json": ("application/json", INDEXES)})
    portal.put({f"/names/{name}": ("text/plain", f"whale\n{name}\n") for name in NAMES})
    portal.put({f"/directories/{name}/x": ("text/plain", "x") for name in NAMES})
    contents = {
        **CONTENTS,
        "data.json": ("application/json", json.dumps(dict(zip(PAYLOADS, PAYLOADS, strict=True)))),
    }
    portal.put({f"/contents/{name}": content for name, content in contents.items()})
    portal.put({"/contents/text.md": ("text/markdown", "\n\n".join(reversed(PAYLOADS)))})
    portal.put({"/contents/page.html": ("text/html", "\n".join(reversed(PAYLOADS)))})
    for name in sorted({IMG, *NAMES[::4]}):
        portal.put({"/contents/last.txt": ("text/plain", name)})
        for url, body in (
            ("/versions/snapshots", {"name": name, "metadata": {name: name}}),
            ("/versions/forks", {"name": name}),
            ("/system/users", {"username": name, "tags": [name]}),
            ("/system/groups", {"name": name}),
            ("/system/cron", {"id": name, "task_type": "gc", "schedule": "30 3 * * *"}),
            ("/auth/keys", {"label": name}),
        ):
            # Some names are refused: what matters is what the pages make of those that are not.
            answer = portal.ask(
                "POST",
                url,
                json.dumps(body),
                Authorization=f"Bearer {portal.token}",
                Content_Type="application/json",
            )
            assert answer.status in (201, 400, 409, 422), (url, name, answer.body)
    portal.ask("DELETE", f"/files/names/{quote(NAMES[1])}", Authorization=f"Bearer {portal.token}")
    portal.send("POST", "/system/tasks/backup", {"snapshot": IMG})
    portal.send("POST", "/system/tasks/backup", {"snapshot": f"there is no {SCRIPT}"})
    portal.send("POST", "/files/share-link", {"paths": [f"/names/{IMG}"]})
    portal.ask("POST", "/auth/token", json.dumps({"api_key": SCRIPT}), Content_Type="application/json")


@pytest.fixture(scope="module")
def as_root(browser: Browser, portal: Portal) -> Any:
    return kept_by_browser(browser, portal)


def addresses(portal: Portal) -> list[str]:
    """The pages; each shows names, contents or what was filled in."""
    snapshot = portal.send("GET", "/versions/snapshots")["snapshots"][0]
    user = next(one for one in portal.send("GET", "/system/users")["users"] if one["username"] == IMG)
    task = portal.send("GET", "/system/tasks")["tasks"][0]["id"]
    name, version = quote(IMG), snapshot["root_hash"]
    said = quote(PAYLOADS[16])
    return [
        *(
            "files/names",
            "files/directories",
            "files/contents",
            f"files/names/{name}",
            f"files/directories/{name}",
        ),
        *(f"files/contents/{file}" for file in (*CONTENTS, "data.json")),
        *(f"{page}/names/{name}" for page in ("history", "blame", "access", "share", "past", "deleted")),
        *("history/contents/text.md", "blame/contents/text.md", "history/names", "deleted/names"),
        f"past/names?version={version}",
        f"compare/contents/text.md?from={version}&to=HEAD",
        f"compare/contents/page.html?from={version}&to=HEAD",
        f"compare/names?from={said}&to={said}",
        *(
            "log",
            "versions",
            "versions/forks",
            f"versions/snapshot?name={name}",
            f"versions/fork?name={name}",
        ),
        *("search?q=whale", "search?q=whale&explain=1", f"search?q={said}", f"files/names?filter={said}"),
        *(
            "events",
            "tasks",
            f"tasks/{task}",
            f"tasks?type={said}&status={said}",
            "tasks/new/backup",
            "schedules",
        ),
        *(
            "people",
            f"people?name={said}&tag={said}",
            f"people/{user['user_id']}",
            f"people/{user['user_id']}/sees/names",
        ),
        *(
            "groups",
            f"groups/{name}",
            f"access/names?user={said}",
            "keys",
            f"keys?user={said}",
            "links",
            "shared",
        ),
        *(
            "state",
            "metrics",
            "plugins",
            "plugins/auth.self",
            "backups",
            "collection",
            "verification",
            "sign-ins",
        ),
        *(f"no/{said}", f"sign-in?next={said}", f"collection?keep_days={said}", f"log?after={said}"),
    ]


@pytest.mark.timeout(300)
def test_nothing_runs(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    page.add_init_script(TELL_VIOLATIONS)
    for address in addresses(portal)[::STEP]:
        answer = page.goto(f"{portal.url}/portal/{address}")
        assert answer is not None
        assert answer.status < 500, address
        check(page, address)
    for address, (action, fields) in list(FORMS.items())[::STEP]:
        page.goto(f"{portal.url}/portal/{address}")
        # As a page of this server that forgot every limit of its fields.
        with page.expect_navigation():
            page.evaluate(SEND, [f"/portal/{address}", {"action": action, **fields}])
        check(page, f"{address}: {urlencode(fields)}")


def test_what_appears_by_itself_runs_neither(portal: Portal, as_root: Any, open_page: Opener) -> None:
    page = open_page(as_root)
    page.goto(f"{portal.url}/portal/events")
    expect(page.locator("#following")).to_contain_text("as they happen")
    portal.put({f"/names/{LATER}{name}": ("text/plain", "x") for name in NAMES[:20]})
    expect(page.locator("#events tr").first).to_contain_text("alert(60)")
    check(page, "events")


TELL_VIOLATIONS = """
addEventListener("securitypolicyviolation", event => console.log(`Security Policy: ${event.blockedURI}`));
"""
SEND = """([url, fields]) => {
  const form = document.createElement("form");
  form.method = "post";
  form.action = url;
  for (const [name, value] of Object.entries(fields)) {
    const field = document.createElement("textarea");
    field.name = name;
    field.value = value;
    form.append(field);
  }
  document.body.append(form);
  form.submit();
}"""


def check(page: Page, where: str) -> None:
    """No element came from a text: none has a handler, an address that runs, or a source elsewhere."""
    faults = page.evaluate(FIND_MADE)
    assert faults == [], where


FIND_MADE = """() => {
  const runs = /^\\s*(java\\s*script|data|vbscript):/i;
  const addresses = ["href", "src", "action", "formaction"];
  const isMade = element =>
    [...element.attributes].some(({name, value}) =>
      name.startsWith("on") || name === "srcdoc" || (addresses.includes(name) && runs.test(value)))
    || (element.localName === "script" && !element.src)
    || ["base", "animate", "math", "style"].includes(element.localName);
  return [...document.querySelectorAll("*")].filter(isMade).map(element => element.outerHTML.slice(0, 200));
}"""
