"""docs/plugins/auth-magic-link.md against the settings and the options."""

from __future__ import annotations

import re
from pathlib import Path

from svc_auth_magic_link import delivery
from svc_auth_magic_link.asking import ANSWER, MOST_REQUESTS, WINDOW_SECONDS
from svc_auth_magic_link.configuration import CODE_MINUTES, MagicLinkSettings
from svc_auth_magic_link.descriptor import PLUGIN

DOCS = Path(__file__).resolve().parents[3] / "docs"
PAGE = (DOCS / "plugins" / "auth-magic-link.md").read_text(encoding="utf-8")
ROUTES = (DOCS / "http" / "magic-link.md").read_text(encoding="utf-8")


def test_every_setting_stands_there_with_its_option_and_variable() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (?:`--([a-z-]+)`)? ?\| (?:`(\w+)`)? ?\|", PAGE, re.MULTILINE)
    options = {option.target: option.name for option in PLUGIN.options}
    assert rows == [
        (
            name,
            options.get(name, ""),
            f"SVC_{options[name].replace('-', '_').upper()}" if name in options else "",
        )
        for name in MagicLinkSettings.__struct_fields__
    ]


def test_limits_are_those_that_count() -> None:
    assert (MOST_REQUESTS, WINDOW_SECONDS, CODE_MINUTES) == (5, 900, 15)
    assert delivery.RETRY_SECONDS == (5.0, 30.0, 120.0)
    for words in ("5 in 15 minutes", "after 5, 30 and 120 seconds", "0.1 to 0.6 seconds", "15 minutes later"):
        assert words in PAGE
    assert delivery._DELAY_SECONDS == (0.1, 0.6)
    assert "10,000 requests and 1,000 mails" in PAGE
    assert (delivery._MOST_REQUESTS, delivery._MOST_MAILS) == (10_000, 1_000)


def test_the_answer_is_quoted_as_it_is() -> None:
    assert f'{{"message": "{ANSWER}"}}' in ROUTES
