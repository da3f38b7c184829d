"""A server with two workers that takes the tokens of an issuer."""

from __future__ import annotations

from svc_auth_oidc.descriptor import PLUGIN

from svc_testing import start_server


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
        assert root not in server.errors + server.output
        assert get(server, "/system/health").json()["status"] == "healthy"
