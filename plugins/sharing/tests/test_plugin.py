"""The plugin by the contract of plugins, its settings, and its job."""

from __future__ import annotations

import msgspec
import pytest

from svc_sharing.addresses import is_base_url
from svc_sharing.configuration import SharingConfiguration
from svc_testing import PluginContract


class TestPlugin(PluginContract):
    plugin_id = "sharing"


@pytest.mark.parametrize(
    ("url", "fits"),
    [
        ("https://files.example.org", True),
        ("http://127.0.0.1:6830/svc/", True),
        ("files.example.org", False),
        ("ftp://files.example.org", False),
        ("https://", False),
        ("https://x.example:port", False),
        ("https://x.example/<script>", False),
        ("https://x.example/" + "a" * 2000, False),
        ("https://\u00fcber.example", False),
    ],
)
def test_links_begin_with_the_url_of_a_server(url: str, fits: bool) -> None:
    assert is_base_url(url) is fits
    if fits:
        assert msgspec.convert({"base_url": url}, SharingConfiguration).base_url == url
    else:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({"base_url": url}, SharingConfiguration)
