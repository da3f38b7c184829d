"""The settings: what is refused when it is set, and what mails they make."""

from __future__ import annotations

from collections.abc import Mapping
from email import message_from_bytes
from email.policy import SMTP
from typing import Any

import pytest

from svc.errors import PluginError
from svc.plugins import validate_settings
from svc.plugins.configuration import option_settings
from svc_auth_magic_link.configuration import MagicLinkSettings
from svc_auth_magic_link.descriptor import PLUGIN
from svc_auth_magic_link.mail import mail_address, make_message


def checked(**settings: Any) -> MagicLinkSettings:
    result = validate_settings(PLUGIN, settings)
    assert isinstance(result, MagicLinkSettings)
    return result


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"url_template": "https://x/"}, "does not name {code}"),
        ({"url_template": "https://x/{code}{user}"}, "something else in braces than {code}"),
        ({"url_template": "https://x/{code!r}"}, "something else in braces"),
        ({"url_template": "https://x/{code:>9}"}, "something else in braces"),
        ({"url_template": "https://x/{code.__class__}"}, "something else in braces"),
        ({"url_template": "https://x/{0}"}, "something else in braces"),
        ({"url_template": "https://x/{}"}, "something else in braces"),
        ({"url_template": "https://x/{code"}, "without its other half"),
        ({"url_template": "https://x/}{code}"}, "without its other half"),
        ({"url_template": "/verify?code={code}"}, "absolute URL"),
        ({"url_template": "https://x/ {code}"}, "absolute URL"),
        ({"url_template": "https://x/\n{code}"}, "absolute URL"),
        ({"url_template": "JavaScript:alert('{code}')"}, "absolute URL"),
        ({"base_url": "svc.example"}, "http or https URL"),
        ({"base_url": "https://x/?a=b"}, "http or https URL"),
        ({"base_url": "https://x/#a"}, "http or https URL"),
        ({"base_url": "https://"}, "http or https URL"),
        ({"text": "no link"}, "does not name {link}"),
        ({"text": "{link} {code}"}, "something else in braces"),
        ({"text": "{link}" + "x" * 20_000}, "at most 20000"),
        ({"subject": "{link}"}, "something else in braces"),
        ({"subject": "a\nBcc: everybody@example.com"}, "one line"),
        ({"subject": " "}, "one line"),
        ({"smtp_host": "mail.example:587 x"}, "smtp_host"),
        ({"smtp_from": "nobody"}, "smtp_from"),
        ({"smtp_from": "a@b\nBcc: c@d"}, "smtp_from"),
        ({"smtp_password": "sesame", "smtp_security": "none"}, "not sent without TLS"),
        ({"smtp_security": "ssl"}, "smtp_security"),
        ({"smtp_port": 65_536}, "smtp_port"),
        ({"smtp_timeout": 0}, "smtp_timeout"),
        ({"smtp_pass": "sesame"}, "unknown field"),
    ],
)
def test_what_no_mail_could_be_made_of_is_refused_when_it_is_set(
    settings: Mapping[str, Any], words: str
) -> None:
    with pytest.raises(PluginError) as caught:
        checked(**settings)
    assert words in caught.value.message
    assert "sesame" not in caught.value.message


@pytest.mark.parametrize("path", ["/nonexistent/ca.pem", "/", __file__])
def test_a_file_without_authorities_is_refused_at_the_start(path: str) -> None:
    (option,) = [one for one in PLUGIN.options if one.name == "smtp-ca"]
    with pytest.raises(ValueError, match="it can't be read, or has none"):
        option_settings(PLUGIN, option, path)
    assert option_settings(PLUGIN, option, "") == {"smtp_ca": ""}


def test_braces_can_be_written() -> None:
    assert checked(url_template="https://x/{{a}}?c={code}").link("K") == "https://x/{a}?c=K"


@pytest.mark.parametrize(
    ("settings", "link"),
    [
        ({}, "/auth/magic-link/verify?code=K"),
        ({"base_url": "https://x"}, "https://x/auth/magic-link/verify?code=K"),
        ({"base_url": "https://x:8443/svc/"}, "https://x:8443/svc/auth/magic-link/verify?code=K"),
        ({"base_url": "https://x", "url_template": "app://enter/{code}"}, "app://enter/K"),
    ],
)
def test_where_a_link_leads(settings: Mapping[str, Any], link: str) -> None:
    assert checked(**settings).link("K") == link


@pytest.mark.parametrize(("security", "port"), [("starttls", 587), ("tls", 465), ("none", 25)])
def test_the_usual_ports(security: str, port: int) -> None:
    assert checked(smtp_security=security).port == port
    assert checked(smtp_security=security, smtp_port=2525).port == 2525


def test_the_password_is_never_shown() -> None:
    assert "sesame" not in repr(checked(smtp_password="sesame"))


def test_a_mail_is_whole_and_its_link_in_one_line() -> None:
    settings = checked(
        base_url="https://svc.example",
        smtp_from="Svc at Zoë's <svc@svc.example>",
        subject="Für {email}, {minutes} Minuten",
        text="Grüße, {email}!\n{link}\n",
    )
    link = settings.link("k" * 43)
    source = bytes(make_message(settings, "ann@example.com", link))
    read = message_from_bytes(source, policy=SMTP)
    assert link.encode() in source
    assert read["Subject"] == "Für ann@example.com, 15 Minuten"
    assert read["From"].addresses[0].addr_spec == "svc@svc.example"
    assert read["To"] == "ann@example.com"
    assert read["Auto-Submitted"] == "auto-generated"
    assert read["Message-ID"].endswith("@svc.example>")
    assert read.get_content().splitlines() == ["Grüße, ann@example.com!", link]


def test_a_long_line_is_wrapped_as_mail_needs_it() -> None:
    settings = checked(smtp_from="a@b.example", text="x" * 3_000 + " {link}")
    source = bytes(make_message(settings, "ann@example.com", "https://x/?code=1"))
    assert max(map(len, source.split(b"\r\n"))) <= 998
    read = message_from_bytes(source, policy=SMTP)
    assert read.get_content().strip() == "x" * 3_000 + " https://x/?code=1"


@pytest.mark.parametrize(
    "username", ["ann@example.com", "a.b+c@x.example", "zoë@example.com", "ann@exämple.com"]
)
def test_what_mail_can_be_sent_to(username: str) -> None:
    assert mail_address(username) == username


@pytest.mark.parametrize(
    "username",
    [
        "ann",
        "ann@",
        "@example.com",
        "a b@example.com",
        "ann@example.com, eve@example.com",
        "ann@example.com>",
        "Ann <ann@example.com>",
        "ann(eve@x)@example.com",
        "ann@example.com\nBcc: eve@example.com",
        "",
    ],
)
def test_what_it_can_not(username: str) -> None:
    assert mail_address(username) is None
