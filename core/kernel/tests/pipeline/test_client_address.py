"""Who the client is behind proxies: what a trusted one has seen counts, and nothing breaks on nonsense."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from falcon.testing import TestClient
from hypothesis import given
from hypothesis import strategies as st

from svc.database import Database
from svc.pipeline import PipelineSettings, create_app
from svc.pipeline.client_address import ClientAddresses, parse_networks
from svc.plugins import Plugins, initialize

PROXY, OTHER_PROXY, STRANGER = "10.0.0.1", "10.0.0.2", "198.51.100.9"
TRUSTED = ("10.0.0.0/30", "2001:db8::/64")


def address(peer: str | None, forwarded: str | None, trusted: tuple[str, ...] = TRUSTED) -> str | None:
    environ: dict[str, Any] = {"REMOTE_ADDR": peer} if peer is not None else {}
    if forwarded is not None:
        environ["HTTP_X_FORWARDED_FOR"] = forwarded
    return ClientAddresses(trusted).of(environ)


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        (PROXY, "203.0.113.7", "203.0.113.7"),
        (PROXY, None, PROXY),
        (PROXY, "", PROXY),
        (PROXY, "1.2.3.4, 203.0.113.7", "203.0.113.7"),
        (PROXY, f"1.2.3.4, 203.0.113.7, {OTHER_PROXY}", "203.0.113.7"),
        (PROXY, f"{OTHER_PROXY},{OTHER_PROXY}", OTHER_PROXY),
        (PROXY, "203.0.113.7:4711", "203.0.113.7"),
        (PROXY, "2001:db8:1::7", "2001:db8:1::7"),
        (PROXY, '"[2001:DB8:1::7]:4711"', "2001:db8:1::7"),
        (PROXY, "::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8::5%eth0", "203.0.113.7", "203.0.113.7"),
        (f"::ffff:{PROXY}", "203.0.113.7", "203.0.113.7"),
        (PROXY, f"203.0.113.7, unknown, {OTHER_PROXY}", OTHER_PROXY),
        (PROXY, "203.0.113.7, ", PROXY),
        (PROXY, "nonsense", PROXY),
        (STRANGER, "203.0.113.7", STRANGER),
        (None, "203.0.113.7", "203.0.113.7"),
        ("", None, None),
        (PROXY, ",".join(["203.0.113.7"] + [OTHER_PROXY] * 200), OTHER_PROXY),
    ],
)
def test_the_right_most_address_that_no_trusted_proxy_has_is_the_clients(
    peer: str | None, forwarded: str | None, client: str | None
) -> None:
    assert address(peer, forwarded) == client


def test_without_trusted_proxies_the_field_counts_for_nothing() -> None:
    assert address(PROXY, "203.0.113.7", ()) == PROXY
    assert address(None, "203.0.113.7", ()) is None


@given(
    forwarded=st.text(st.characters(max_codepoint=255), max_size=80)
    | st.text("0123456789.:,[]% ", max_size=60)
)
def test_no_field_breaks_it(forwarded: str) -> None:
    assert address(PROXY, forwarded) is not None


@pytest.mark.parametrize("text", ["", "proxy.example", "10.0.0.1/8", "10.0.0.0/33", "*"])
def test_what_is_no_network_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is no IP address"):
        parse_networks([text])


def test_the_access_log_names_the_client(
    tmp_path: Path, plugins: Plugins, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(tmp_path / "test.svcdb")
    initialize(database, plugins)
    settings = PipelineSettings(auth="testing", access_log=True, trusted_proxies=("127.0.0.1",))
    app = create_app(database, plugins, settings=settings)
    with caplog.at_level(logging.INFO, "svc.access"):
        for forwarded in ("1.1.1.1, 203.0.113.7", "\xff,,[", "203.0.113.8"):
            TestClient(app).simulate_get(
                "/kinds", headers={"X-Forwarded-For": forwarded}, remote_addr="127.0.0.1"
            )
    app.service.close()
    remotes = [record.fields["remote"] for record in caplog.records if record.name == "svc.access"]
    assert remotes == ["203.0.113.7", "127.0.0.1", "203.0.113.8"]


@pytest.mark.parametrize(
    ("trusted", "peer", "warns"),
    [
        ((), "127.0.0.1", True),
        ((), "10.1.2.3", True),
        ((), "8.8.8.8", False),
        ((), None, True),
        (("10.0.0.0/8",), "10.1.2.3", False),
        (("10.0.0.0/8",), "192.168.1.1", True),
        (("10.0.0.0/8",), None, False),
    ],
)
def test_a_proxy_that_is_not_trusted_is_told_of_once(
    caplog: pytest.LogCaptureFixture, trusted: tuple[str, ...], peer: str | None, warns: bool
) -> None:
    addresses = ClientAddresses(trusted)
    for _ in range(3):
        addresses.of({"REMOTE_ADDR": peer or "", "HTTP_X_FORWARDED_FOR": "192.0.2.1"})
        addresses.of({"REMOTE_ADDR": peer or ""})
    assert caplog.text.count("--trusted-proxies") == warns
