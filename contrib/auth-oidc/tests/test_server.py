"""A server with two workers that takes the tokens of an issuer."""

from __future__ import annotations

import json

from svc_auth_oidc.configuration import OidcSettings
from svc_auth_oidc.descriptor import PLUGIN
from svc_auth_oidc.mode import OidcAuthMode

from svc.plugin import AuthContext, Credentials, Database, Operation
from svc_testing import start_server


def post(server, path: str, value: object, token: str):
    fields = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    return server.request("POST", path, body=json.dumps(value).encode(), headers=fields)


def get(server, path: str, token: str | None = None):
    return server.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})


def test_tokens_open_a_server_as_far_as_the_groups_go(issuer, database_path):
    options = (
        *("--auth", f"oidc://{issuer.argument}", "--workers", "2"),
        *(
            "--plugin-option",
            f"{PLUGIN.id}.audience=svc",
            "--plugin-option",
            f"{PLUGIN.id}.root_group=admins",
        ),
        *("--plugin-option", f"{PLUGIN.id}.retry_s=0"),
    )
    with start_server(database_path, *options, plugins=["users", PLUGIN.id]) as server:
        root, ann = issuer.sign(sub="boss", groups=["admins"]), issuer.sign(groups=["staff"])
        refused = get(server, "/system/plugins")
        assert (refused.status, refused.headers["www-authenticate"]) == (401, "Bearer")
        # Both workers get some of these, and each fetches the keys for itself.
        assert {get(server, "/system/plugins", root).status for _ in range(20)} == {200}
        assert {get(server, "/system/plugins", ann).status for _ in range(20)} == {403}
        assert issuer.fetches <= 2
        later = issuer.sign(kid=issuer.rotate("RS256", keep=True), sub="boss", groups=["admins"])
        assert {get(server, "/system/plugins", later).status for _ in range(20)} == {200}
        assert get(server, "/system/whoami", ann).json()["name"] == "ann"
        assert post(server, "/system/groups", {"name": "staff"}, root).status == 201
        grant = {"path": "/docs", "group": "staff", "allow": "-r--l---"}
        with Database(database_path) as database:
            context = AuthContext(database, issuer.argument, OidcSettings(audience="svc"))
            mode, credentials = OidcAuthMode().bind(context), Credentials("bearer", ann)
            before = mode.authenticate(credentials)
            assert not before.rights.allows(Operation.READ, ("docs", "a"))
            assert post(server, "/system/grants", grant, root).status == 201
            after = mode.authenticate(credentials)
            assert after.rights.allows(Operation.READ, ("docs", "a"))
            assert not after.rights.allows(Operation.UPDATE, ("docs", "a"))
            assert not after.rights.allows(Operation.READ, ("other",))
            alone = {"path": "/other", "group": f"user:{after.user_id}", "allow": "-r------"}
            assert post(server, "/system/grants", alone, root).status == 201
            assert mode.authenticate(credentials).rights.allows(Operation.READ, ("other",))
            assert post(server, "/system/grants", {**alone, "group": "user:ann"}, root).status == 404
        assert root not in server.errors + server.output
        assert get(server, "/system/health").json()["status"] == "healthy"
