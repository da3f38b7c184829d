"""The auth mode, by the contracts of svc and against an issuer."""

from __future__ import annotations

import base64
import hmac
import time

import pytest
from svc_auth_oidc.configuration import OidcSettings
from svc_auth_oidc.descriptor import PLUGIN
from svc_auth_oidc.health import IssuerCheck
from svc_auth_oidc.mode import OidcAuthMode

from svc.errors import AuthRequired, ServiceUnavailable, UsageError
from svc.plugin import ROOT_USER_ID, AuthContext, Credentials, Operation, permitted
from svc_testing import AuthModeContract, PluginContract
from svc_users.api import own_group

SETTINGS = OidcSettings(audience="svc", root_group="admins", retry_s=0)


def bearer(token: str) -> Credentials:
    return Credentials("bearer", token)


def bind(database, issuer, settings=SETTINGS):
    return OidcAuthMode().bind(AuthContext(database, issuer.argument, settings))


def signed_with_the_public_key(issuer, body: str) -> str:
    """A token whose HMAC key is what everybody knows: the oldest way to confuse a verifier."""
    head = base64.urlsafe_b64encode(b'{"alg":"HS256","kid":"key-1"}').rstrip(b"=").decode()
    public = base64.urlsafe_b64decode(issuer.keys[0]["x"] + "==")
    mac = hmac.digest(public, f"{head}.{body}".encode(), "sha256")
    return f"{head}.{body}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestMode(AuthModeContract):
    @pytest.fixture
    def mode(self, database, issuer):
        return bind(database, issuer)

    @pytest.fixture
    def accepted(self, issuer):
        return [
            bearer(issuer.sign()),
            bearer(issuer.sign(groups=["admins"])),
            Credentials(query_token=issuer.sign(groups=["staff"])),
        ]

    @pytest.fixture
    def refused(self, issuer):
        token = issuer.sign()
        head, body, signature = token.split(".")
        none = base64.urlsafe_b64encode(b'{"alg":"none","kid":"key-1"}').rstrip(b"=").decode()
        long_ago = int(time.time()) - 3600
        return [
            bearer(text)
            for text in (
                "not a token",
                f"{none}.{body}.",
                f"{none}.{body}.{signature}",
                f"{head}.{body}.{signature[:-4]}AAAA",
                signed_with_the_public_key(issuer, body),
                issuer.sign(exp=long_ago),
                issuer.sign(exp=None),
                issuer.sign(exp=1e300, nbf=2**40),
                issuer.sign(nbf=int(time.time()) + 3600),
                issuer.sign(aud="another service"),
                issuer.sign(aud=None),
                issuer.sign(iss="https://issuer.example"),
                issuer.sign(iss=None),
                issuer.sign(sub=None),
                issuer.sign(sub=" "),
                issuer.sign(headers={"kid": "unknown"}),
                issuer.sign(pad="x" * 20_000),
            )
        ]


def test_claims_become_a_user_and_groups(database, issuer):
    mode = bind(database, issuer)
    ann = mode.authenticate(bearer(issuer.sign(groups=["staff", "user:someone-else", "USER:other", 7])))
    assert (ann.name, ann.is_root) == ("ann", False)
    assert ann.groups == {"staff", own_group(ann.user_id)}
    again = mode.authenticate(bearer(issuer.sign(preferred_username="Ann Other", groups="staff")))
    assert (again.user_id, again.name, again.groups) == (ann.user_id, "Ann Other", ann.groups)
    other = mode.authenticate(bearer(issuer.sign(sub="another", preferred_username=None)))
    assert other.user_id != ann.user_id
    assert other.name == "another"


def test_a_token_does_what_its_scope_was_given_for(database, issuer):
    settings = OidcSettings(
        audience="svc", root_group="admins", required_scope="svc", read_scope="svc.read", retry_s=0
    )
    mode = bind(database, issuer, settings)
    for claims in ({"scope": "openid svc"}, {"scp": ["svc", 7]}, {"scope": "svc svc.read"}):
        whole = mode.authenticate(bearer(issuer.sign(groups=["admins"], **claims)))
        assert whole.is_unrestricted_root
    for claims in ({"scope": "openid svc.read"}, {"scp": ["svc.read"]}):
        token = issuer.sign(groups=["admins"], **claims)
        reader = mode.authenticate(bearer(token))
        assert permitted(reader, ("a", "b")) == Operation.READ.bit | Operation.LIST.bit
        assert not reader.is_unrestricted_root
        assert not mode.verify_root_key(AuthContext(database, issuer.argument, settings), token)
    for claims in (
        {},
        {"scope": "svcx"},
        {"scope": "SVC"},
        {"scope": ["sv", "c"]},
        {"scope": 7},
        {"scp": None},
    ):
        with pytest.raises(AuthRequired):
            mode.authenticate(bearer(issuer.sign(groups=["admins"], **claims)))
    assert bind(database, issuer).authenticate(bearer(issuer.sign(scope="anything"))) is not None
    with pytest.raises(ValueError, match="name both"):
        OidcSettings(read_scope="svc.read")


def test_every_id_may_be_a_users_and_no_name_is(database, issuer):
    mode = bind(database, issuer)
    ann = mode.authenticate(bearer(issuer.sign()))
    assert mode.find_user(ann.user_id) == mode.find_user(ann.user_id.upper()) == (ann.user_id, None)
    for text in ("ann", "", ROOT_USER_ID, "{" + ann.user_id + "}", ann.user_id.replace("-", "")):
        assert mode.find_user(text) is None


def test_settings_say_which_claims_are_read(database, issuer):
    settings = OidcSettings(
        audience="svc",
        user_claim="email",
        groups_claim="realm_access.roles",
        group_prefix="oidc:",
        root_group="boss",
    )
    mode = bind(database, issuer, settings)
    ann = mode.authenticate(bearer(issuer.sign(email="ann@example.org", realm_access={"roles": ["staff"]})))
    assert ann.name == "ann@example.org"
    assert ann.groups == {"oidc:staff", own_group(ann.user_id)}
    boss = mode.authenticate(bearer(issuer.sign(realm_access={"roles": ["boss"]})))
    assert boss.is_unrestricted_root
    assert mode.authenticate(bearer(issuer.sign(groups=["boss"]))).is_root is False


def test_a_caller_stays_the_same_object_while_nothing_of_theirs_changes(database, issuer):
    mode = bind(database, issuer)
    credentials = bearer(issuer.sign(groups=["staff"]))
    before = mode.authenticate(credentials)
    assert not before.rights.allows(Operation.READ, ("reports", "a"))
    with database.transaction() as transaction:
        transaction.put(("unrelated",), b"")
    assert mode.authenticate(credentials) is before


@pytest.mark.parametrize(
    ("kind", "algorithm"), [("RS256", "RS256"), ("RS256", "PS256"), ("ES256", "ES256"), ("EdDSA", "EdDSA")]
)
def test_keys_of_every_kind_verify(database, issuer, kind, algorithm):
    kid = issuer.rotate(kind, with_alg=False)
    token = issuer.sign(kid=kid, algorithm=algorithm)
    assert bind(database, issuer).authenticate(bearer(token)).name == "ann"


def test_an_algorithm_that_is_not_allowed_or_not_the_keys_is_refused(database, issuer):
    kid = issuer.rotate("RS256")
    only = OidcSettings(audience="svc", algorithms=("EdDSA",), retry_s=0)
    for mode, algorithm in ((bind(database, issuer, only), "RS256"), (bind(database, issuer), "PS256")):
        with pytest.raises(AuthRequired):
            mode.authenticate(bearer(issuer.sign(kid=kid, algorithm=algorithm)))


def test_a_token_ends_when_it_says_so_also_when_it_was_taken_before(database, issuer, monkeypatch):
    mode = bind(database, issuer)
    credentials = bearer(issuer.sign(exp=int(time.time()) + 1000))
    assert mode.authenticate(credentials).expires_ms > time.time_ns() // 1_000_000
    later = time.time() + 2000
    monkeypatch.setattr("svc_auth_oidc.mode.time.time", lambda: later)
    for _ in range(2):
        with pytest.raises(AuthRequired):
            mode.authenticate(credentials)


def test_a_new_key_is_fetched_when_a_token_names_it_and_a_dropped_one_ends(database, issuer):
    mode = bind(database, issuer)
    old = bearer(issuer.sign())
    assert mode.authenticate(old)
    kid = issuer.rotate("RS256", keep=True)
    assert mode.authenticate(bearer(issuer.sign(kid=kid)))
    assert issuer.fetches == 2
    assert mode.authenticate(old)
    assert issuer.fetches == 2
    kid = issuer.rotate()
    assert mode.authenticate(bearer(issuer.sign(kid=kid)))
    with pytest.raises(AuthRequired):
        mode.authenticate(old)


def test_without_the_issuer_its_keys_go_on_and_health_says_so(database, issuer, loaded_plugins):
    mode = bind(database, issuer)
    credentials = bearer(issuer.sign())
    check = IssuerCheck()
    context = type("Context", (), {"database": database})()
    assert mode.authenticate(credentials)
    unknown = bearer(issuer.sign(kid=issuer.rotate()))
    issuer.order("down", down=True)
    assert check.check(context).status.value == "healthy"
    with pytest.raises(ServiceUnavailable) as told:
        mode.authenticate(unknown)
    assert told.value.details["retry_after"] >= 1
    assert mode.authenticate(credentials)
    report = check.check(context)
    assert report.status.value == "degraded"
    assert issuer.url not in report.message
    issuer.order("down", down=False)
    assert mode.authenticate(unknown)
    assert check.check(context).status.value == "healthy"


def test_a_token_of_the_root_group_is_a_root_key_at_the_shell(database, issuer):
    mode, context = OidcAuthMode(), AuthContext(database, issuer.argument, SETTINGS)
    assert mode.verify_root_key(context, issuer.sign(groups=["admins"])) is True
    assert mode.verify_root_key(context, issuer.sign(groups=["staff"])) is False
    assert mode.verify_root_key(context, issuer.sign(groups=["admins"], aud="another")) is False
    assert mode.verify_root_key(context, "svc_k_0_0") is None


@pytest.mark.parametrize(
    ("argument", "settings"),
    [
        ("", OidcSettings(audience="svc")),
        ("", OidcSettings(audience="svc", issuer="http://issuer.example")),
        ("user@issuer.example", OidcSettings(audience="svc")),
        ("issuer.example/?x=1", OidcSettings(audience="svc")),
        ("[", OidcSettings(audience="svc")),
        ("issuer.example/realm", OidcSettings()),
    ],
)
def test_it_does_not_start_without_an_issuer_and_an_audience(database, argument, settings):
    with pytest.raises(UsageError):
        OidcAuthMode().prepare(AuthContext(database, argument, settings))


@pytest.mark.parametrize("settings", ['algorithms=["HS256"]', "group_prefix=user:", "refresh_s=0"])
def test_settings_that_would_weaken_it_are_refused(run_svc, database_path, database, settings):
    done = run_svc("plugins", "config", PLUGIN.id, "-D", database_path, "--set", settings)
    assert done.exit_code == 10, done.stderr
