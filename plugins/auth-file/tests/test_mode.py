"""File mode over the routes of a server: who may sign in, what they may do, and when that ends."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from svc.errors import InvalidInput, UsageError
from svc.plugin import AuthMode, Credentials, Database, Operation
from svc.plugins import AuthContext, Plugins, initialize
from svc_auth_file.format import user_id_of
from svc_auth_file.keys import hash_of_key, key_id_of, new_key
from svc_auth_file.mode import FileAuthMode
from svc_auth_self.api import create_key
from svc_testing import AuthModeContract, PluginContract
from svc_users.api import Group, checked_grant, name_key, own_group, put_grant

DAY_MS = 86_400_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def allow(database: Database, group: str, path: str, flags: str, *, tags: tuple[str, ...] = ()) -> None:
    """Makes a group, and lets it do something."""
    record = Group(name=group, tags=tags, created_at=1)
    with database.transaction() as transaction:
        transaction.put_system(("groups", "by-name", name_key(group)), msgspec.json.encode(record))
        for tag in tags:
            transaction.put_system(("groups", "of-tag", name_key(tag), name_key(group)), b"")
    grant = checked_grant((path,), group, allow=flags, created_at=1)
    with database.transaction() as transaction:
        put_grant(transaction, database.system(), grant)


class TestPlugin(PluginContract):
    plugin_id = "auth.file"


class TestMode(AuthModeContract):
    @pytest.fixture
    def mode(self, served) -> AuthMode:
        return served.mode

    @pytest.fixture
    def accepted(self, served, ann_key) -> Sequence[Credentials]:
        allow(served.database, "editors", "shared", "crudl---")
        return [
            Credentials(scheme="bearer", value=served.token(ann_key)),
            Credentials(scheme="bearer", value=served.token(served.root_key)),
            Credentials(query_token=served.token(ann_key)),
        ]

    @pytest.fixture
    def refused(self, served, ann_key) -> Sequence[Credentials]:
        token = served.token(ann_key)
        return [
            Credentials(scheme="bearer", value=ann_key),
            Credentials(scheme="bearer", value=token[:-4] + "AAAA"),
        ]


# -- signing in ---------------------------------------------------------------------------------------------


def test_a_user_of_the_file_signs_in_with_a_key_of_the_file(served, ann_key) -> None:
    identity = served.mode.authenticate(Credentials(scheme="bearer", value=served.token(ann_key)))
    assert (identity.name, identity.user_id) == ("ann", user_id_of("ann"))
    assert identity.key_id == key_id_of(hash_of_key(ann_key))
    assert identity.groups == {"editors", own_group(user_id_of("ann"))}
    assert not identity.is_root
    me = served.get("/system/whoami", served.token(ann_key)).json
    assert me["auth_mode"] == "file"


def test_the_root_key_of_the_first_start_is_good_and_is_made_once(served, plugins: Plugins) -> None:
    identity = served.mode.authenticate(Credentials(scheme="bearer", value=served.token(served.root_key)))
    assert identity.is_root
    context = AuthContext(served.database, str(served.file), None)
    assert list(FileAuthMode().prepare(context)) == []


def test_a_wrong_key_is_401(served, ann_key) -> None:
    for key in (new_key(), ann_key[:-1], ann_key + "0", hash_of_key(ann_key), "", "x"):
        assert served.sign_in(key).status_code == 401


def test_tokens_are_refreshed_as_in_self_contained_mode(served, ann_key) -> None:
    first = served.sign_in(ann_key).json
    second = served.post("/auth/refresh", {"refresh_token": first["refresh_token"]})
    assert second.status_code == 200
    assert served.get("/system/whoami", second.json["token"]).status_code == 200


def test_an_expired_key_is_401_and_so_are_its_tokens(served, lines) -> None:
    key = new_key()
    served.write(lines.user("ann") + lines.key(key, expires="2020-01-01"))
    assert served.sign_in(key).status_code == 401
    served.write(lines.user("ann") + lines.key(key))
    token = served.token(key)
    served.write(lines.user("ann") + lines.key(key, expires="2020-01-01"))
    assert served.get("/system/whoami", token).status_code == 401


def test_the_token_of_a_key_ends_no_later_than_the_key(served, lines) -> None:
    key, ends = new_key(), time.gmtime(time.time() + 100)
    served.write(lines.user("ann") + lines.key(key, expires=time.strftime("%Y-%m-%dT%H:%M:%SZ", ends)))
    assert served.sign_in(key).json["expires_in"] <= 100


def test_a_key_of_the_database_works_for_a_user_of_the_file(served, ann_key) -> None:
    with served.database.transaction() as transaction:
        _, text = create_key(
            served.database,
            transaction,
            user_id=user_id_of("ann"),
            label="made later",
            expires_at=now_ms() + DAY_MS,
            rules=(),
            created_by=None,
        )
    token = served.token(text)
    assert served.get("/system/whoami", token).json["name"] == "ann"
    served.write('[[users]]\nusername = "bob"\n')
    assert served.get("/system/whoami", token).status_code == 401
    assert served.sign_in(text).status_code == 401


def test_a_key_of_the_database_of_somebody_who_is_not_in_the_file_is_401(served) -> None:
    with served.database.transaction() as transaction:
        _, text = create_key(
            served.database,
            transaction,
            user_id="0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90",
            label="",
            expires_at=now_ms() + DAY_MS,
            rules=(),
            created_by=None,
        )
    assert served.sign_in(text).status_code == 401


# -- what they may do ---------------------------------------------------------------------------------------


def permissions(served, token: str, path: str) -> str:
    from svc.pipeline import effective_permissions

    identity = served.mode.authenticate(Credentials(scheme="bearer", value=token))
    return effective_permissions(identity, (path,))


def test_groups_of_the_file_have_the_grants_of_the_database(served, ann_key) -> None:
    token = served.token(ann_key)
    assert permissions(served, token, "shared") == "--------"
    allow(served.database, "Editors", "shared", "-r--l---")
    assert permissions(served, token, "shared") == "-r--l---", "by the next request"
    assert permissions(served, token, "other") == "--------"


def test_a_tag_of_the_file_makes_a_member_of_the_groups_that_name_it(served, lines, ann_key) -> None:
    allow(served.database, "staff", "office", "-r--l---", tags=("employee",))
    token = served.token(ann_key)
    assert permissions(served, token, "office") == "--------"
    served.write(lines.user("ann", ann_key, tags=["employee"]))
    assert permissions(served, token, "office") == "-r--l---"


def test_a_change_of_groups_in_the_file_counts_for_tokens_that_are_out(served, lines, ann_key) -> None:
    allow(served.database, "editors", "shared", "crudl---")
    allow(served.database, "readers", "shared", "-r--l---")
    token = served.token(ann_key)
    assert permissions(served, token, "shared") == "crudl---"
    served.write(lines.user("ann", ann_key, groups=["readers"]))
    assert permissions(served, token, "shared") == "-r--l---"


def test_a_user_who_is_root_may_do_everything_while_the_file_says_so(served, lines, ann_key) -> None:
    token = served.token(ann_key)
    assert served.get("/system/info", token).status_code == 403
    served.write(lines.user("ann", ann_key, root=True))
    assert served.get("/system/info", token).status_code == 200
    served.write(lines.user("ann", ann_key))
    assert served.get("/system/info", token).status_code == 403


def test_the_rules_of_a_key_narrow_also_what_root_may(served, lines) -> None:
    key = new_key()
    served.write(lines.user("ann", root=True) + lines.key(key, rules='[{ "/reports/**" = "-r--l---" }]'))
    token = served.token(key)
    assert permissions(served, token, "reports") == "-r--l---"
    assert permissions(served, token, "other") == "--------"
    assert served.get("/system/info", token).status_code == 403


# -- when it ends -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["removed", "deactivated", "key removed", "renamed"])
def test_what_the_file_takes_away_ends_with_the_next_request(served, lines, ann_key, how) -> None:
    signed_in = served.sign_in(ann_key).json
    token = signed_in["token"]
    assert served.get("/system/whoami", token).status_code == 200
    bob = lines.user("bob")
    served.write(
        {
            "removed": bob,
            "deactivated": lines.user("ann", ann_key, active=False),
            "key removed": lines.user("ann"),
            "renamed": lines.user("anna", ann_key),
        }[how]
    )
    assert served.get("/system/whoami", token).status_code == 401
    assert served.post("/auth/refresh", {"refresh_token": signed_in["refresh_token"]}).status_code == 401
    assert served.sign_in(ann_key).status_code == (200 if how == "renamed" else 401)
    if how != "renamed":
        served.write(lines.user("ann", ann_key))
        assert served.get("/system/whoami", token).status_code == 200, (
            "it is not spent: the file is the truth"
        )


def test_a_new_name_with_the_old_id_is_the_same_user(served, lines, ann_key) -> None:
    token = served.token(ann_key)
    served.write(lines.user("anna", ann_key, user_id=user_id_of("ann")))
    assert served.get("/system/whoami", token).json["name"] == "anna"


# -- a broken file ------------------------------------------------------------------------------------------


def test_a_broken_file_keeps_the_last_good_one_and_is_told_of(served, ann_key) -> None:
    token, root = served.token(ann_key), served.token(served.root_key)
    assert served.get("/system/health").json["status"] == "healthy"
    good = served.file.read_text()
    served.write("[[users]]\nusername = 7")
    assert served.get("/system/whoami", token).status_code == 200
    time.sleep(0.15)  # The checks are asked ten times a second at most.
    health = served.get("/system/health").json
    assert health["status"] == "degraded"
    assert health["checks"]["users-file"]["status"] == "degraded"
    assert str(served.file) not in str(health), "a stranger learns no path"
    assert "username" not in str(health)
    (finding,) = served.get("/system/findings", root).json["findings"]
    assert str(served.file) in finding["detail"]
    assert "[[users]] 1: username: Expected `str`, got `int`." in finding["detail"]
    served.write(good)
    served.get("/system/whoami", token)
    assert served.mode._source.problem is None


def test_the_start_refuses_a_broken_file(served, tmp_path: Path) -> None:
    for argument, words in (
        (str(tmp_path / "none.toml"), "No such file"),
        (str(tmp_path), "It is a directory."),
    ):
        with pytest.raises(InvalidInput, match=words):
            FileAuthMode().prepare(AuthContext(served.database, argument, None))
    with pytest.raises(UsageError, match="--auth file:///path"):
        FileAuthMode().prepare(AuthContext(served.database, "", None))
    with pytest.raises(UsageError, match="--auth file:///path"):
        FileAuthMode().bind(AuthContext(served.database, "", None))


def test_no_root_key_is_made_where_the_file_is_broken(tmp_path: Path, plugins: Plugins) -> None:
    with Database(tmp_path / "new.svcdb") as database:
        initialize(database, plugins)
        context = AuthContext(database, str(tmp_path / "none.toml"), None)
        with pytest.raises(InvalidInput):
            FileAuthMode().prepare(context)
        (tmp_path / "none.toml").write_text('[[users]]\nusername = "ann"')
        assert any("svc_k_" in line for line in FileAuthMode().prepare(context)), "it is printed at last"


# -- the root key at the shell ------------------------------------------------------------------------------


def test_the_root_key_at_the_shell(served, lines) -> None:
    mode, key, scoped, plain = FileAuthMode(), new_key(), new_key(), new_key()
    served.file.write_text(
        lines.user("boss", key, root=True)
        + lines.key(scoped, rules='[{ "/**" = "crudlify" }]')
        + lines.user("ann", plain)
    )
    context = AuthContext(served.database, str(served.file), None)
    assert mode.verify_root_key(context, served.root_key) is True
    assert mode.verify_root_key(context, key) is True
    assert mode.verify_root_key(context, scoped) is False
    assert mode.verify_root_key(context, plain) is False
    assert mode.verify_root_key(context, new_key()) is None
    served.file.write_text(lines.user("boss", key, root=True, active=False))
    assert mode.verify_root_key(context, key) is False


def test_a_broken_file_vouches_for_no_root_key(served) -> None:
    served.file.write_text("")
    with pytest.raises(InvalidInput, match="can't be used"):
        FileAuthMode().verify_root_key(AuthContext(served.database, str(served.file), None), "svc_k_x")


def test_what_the_server_may_do_never_names_an_operation_that_nobody_granted(served, ann_key) -> None:
    identity = served.mode.authenticate(Credentials(scheme="bearer", value=served.token(ann_key)))
    assert not any(identity.rights.allows(operation, ("x",)) for operation in Operation)
