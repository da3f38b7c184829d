"""Tries the OpenAPI document: schemathesis generates requests, and a TypeScript client is generated and used.

Run by ``uv run tox -e openapi``. It fails if a request gets a 5xx, if an answer does not fit its schema or
has a status or media type that the document does not name, or if the client does not compile or work.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from svc_client import Client
from svc_testing import run_svc, start_server

HERE = Path(__file__).parent
CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,response_headers_conformance,"
    "response_schema_conformance,ignored_auth"
)
KEPT = r"^/system/plugins/|^/auth/(logout|signing-key)|/admin/|^/auth/keys/\{|^/api-keys/\{"
"""What would end the test itself: disabling plugins, and revoking the keys and tokens that it uses."""

ENDLESS = r"^/system/events$|^/events/"
"""Streams that never end by themselves."""

PACKAGES = ("openapi-typescript@7", "openapi-fetch@0", "typescript@5", "@types/node@20")


@contextmanager
def served(directory: Path) -> Iterator[tuple[str, str, dict[str, str]]]:
    """A server with the default plugins and some data: its URL, root's key, and the token of each caller."""
    path = directory / "openapi.svcdb"
    with start_server(path, "--auth", "self", "--background", "true", plugins=None) as server:
        root = re.search(r"svc_k_\S+", server.output)
        assert root is not None, server.output
        # Root comes last: what it does may deactivate the user.
        keys = {"nobody": "", "user": "", "root": root[0]}
        environment = {"SVC_DATABASE": server.url, "SVC_API_KEY": keys["root"]}
        for words in ("user add ann", "grant add /public --user ann --allow crudl"):
            done = run_svc(*words.split(), env=environment)
            assert done.exit_code == 0, done.stderr
        made = run_svc("key", "create", "--user", "ann", "--json", env=environment)
        keys["user"] = made.json()["key"]
        with Client(server.url, api_key=keys["root"]) as client:
            for name in ("public/a.txt", "public/b.json", "private/c.txt"):
                client.request("PUT", f"/files/{name}", body=b'{"a": "b"}').close()
            # All before the first run: its wrong keys keep this address from signing in for a while.
            yield server.url, root[0], {caller: key and token_of(client, key) for caller, key in keys.items()}


def token_of(client: Client, key: str) -> str:
    """Signs in with a key."""
    body = json.dumps({"api_key": key}).encode()
    token: str = client.request("POST", "/auth/token", body=body).json(dict)["token"]
    return token


def try_requests(url: str, caller: str, token: str, examples: int, seed: int) -> int:
    """Runs schemathesis as a caller; returns how many requests it has made."""
    headers = ["-H", f"Authorization: Bearer {token}"] if token else []
    done = subprocess.run(
        [
            *(Path(sys.executable).with_name("st"), "run", f"{url}/system/openapi.json"),
            *("--phases", "coverage,fuzzing", "--max-examples", str(examples), "--seed", str(seed)),
            *("--checks", CHECKS, "--exclude-path-regex", f"{KEPT}|{ENDLESS}", "--warnings", "off"),
            *("--workers", "1", "--suppress-health-check", "all", "--request-timeout", "60", *headers),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "NO_COLOR": "1", "COLUMNS": "120"},
    )
    counted = re.search(r"([\d,]+) generated", done.stdout)
    if done.returncode or counted is None:
        raise SystemExit(f"As {caller}:\n{done.stdout}")
    return int(counted[1].replace(",", ""))


def try_typescript(url: str, key: str, directory: Path) -> None:
    """Generates a TypeScript client, compiles a program that uses it, and runs that."""
    if shutil.which("npm") is None:
        raise SystemExit("This needs npm (Debian: nodejs, npm).")
    project = directory / "typescript"
    shutil.copytree(HERE / "typescript", project)
    quiet = {"cwd": project, "check": True, "stdout": subprocess.DEVNULL}
    subprocess.run(["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], **quiet)
    with Client(url) as client:
        answer = client.request("GET", "/system/openapi.json")
        (project / "openapi.json").write_bytes(answer.content())
    bin_directory = project / "node_modules" / ".bin"
    # What has a default may be left out of a request.
    generator = [bin_directory / "openapi-typescript", "--default-non-nullable=false"]
    subprocess.run([*generator, "openapi.json", "-o", "schema.d.ts"], **quiet)
    subprocess.run([bin_directory / "tsc", "--project", "."], cwd=project, check=True)
    subprocess.run(
        ["node", "calls.js"], cwd=project, check=True, env={**os.environ, "SVC_URL": url, "SVC_API_KEY": key}
    )


def main() -> None:
    """Tries both, as root, as a user and as nobody."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=20, help="generated requests for each operation")
    parser.add_argument("--cases", type=int, default=20_000, help="requests that there must be in all")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="svc-openapi-") as name:
        directory = Path(name)
        with served(directory) as (url, root_key, tokens):
            try_typescript(url, root_key, directory)
            print("The TypeScript client compiles, and has called five operations.")
            made = 0
            for caller, token in tokens.items():
                number = try_requests(url, caller, token, options.examples, options.seed)
                print(f"As {caller}: {number:,} requests, no 5xx, every answer as the document says.")
                made += number
    print(f"{made:,} requests in all.")
    if made < options.cases:
        raise SystemExit(f"That is fewer than {options.cases:,}: raise --examples.")


if __name__ == "__main__":
    main()
