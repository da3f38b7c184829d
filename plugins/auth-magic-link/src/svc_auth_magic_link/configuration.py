"""The settings of the plugin: where links lead, how mail is sent, and what it says.

Imported with the descriptor at every start, so it imports little. What a template may name is checked here,
so that a typing error is found when the setting is made and not when somebody waits for a mail.
"""

from __future__ import annotations

import re
from string import Formatter
from typing import Annotated, Literal

import msgspec

from svc.plugin import Secret

__all__ = ["CODE_MINUTES", "VERIFY_PATH", "MagicLinkSettings", "check_authorities"]

CODE_MINUTES = 15
VERIFY_PATH = "/auth/magic-link/verify"
"""How long a code can be used."""

_URL = re.compile(r"[a-z][a-z0-9+.-]*:[!-~]+", re.IGNORECASE)
_BASE_URL = re.compile(r"https?://[^/?#\s]+(?:/[^?#\s]*)?", re.IGNORECASE)
_HOST = re.compile(r"[A-Za-z0-9._:-]+")
_ADDRESS = re.compile(r"(?:[^<>\r\n]*<[^\s<>@]+@[^\s<>@]+>|[^\s<>@]+@[^\s<>@]+)")
_MOST_TEXT = 20_000
_SCRIPTS = ("javascript:", "data:", "vbscript:")

_Short = Annotated[str, msgspec.Meta(max_length=2000)]
_Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
_Seconds = Annotated[float, msgspec.Meta(ge=0.1, le=120)]

_TEXT = """\
Hello,

this link signs you in as {email}:

{link}

It can be used once, within {minutes} minutes. If you did not ask for it, do nothing: nobody is signed in
without it.
"""


class MagicLinkSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the plugin can be told.

    Attributes:
        url_template: the link, with ``{code}`` in it; it may lead to an application of its own.
        base_url: where this server is reached, when there is no template: the link is then
            ``<base_url>/auth/magic-link/verify?code=<code>``.
        log_links: write links to the log in place of mailing them.
        smtp_host: the server that takes the mail; empty: nothing is mailed.
        smtp_port: its port; 0 for the usual one: 587 with STARTTLS, 465 with TLS, 25 without.
        smtp_security: ``starttls``, ``tls`` from the first byte on, or ``none``.
        smtp_ca: PEM file of the authorities that its certificate is checked against; empty: the system's.
        smtp_user: name to sign in there with; empty: no sign-in.
        smtp_password: password of that name.
        smtp_from: the sender, an address or ``Name <address>``.
        smtp_timeout: longest wait for its next answer, in seconds.
        subject: of the mail; may name ``{email}`` and ``{minutes}``.
        text: of the mail; names ``{link}``, and may name ``{email}`` and ``{minutes}``.
    """

    url_template: _Short = ""
    base_url: _Short = ""
    log_links: bool = False
    smtp_host: _Short = ""
    smtp_port: _Port = 0
    smtp_security: Literal["starttls", "tls", "none"] = "starttls"
    smtp_ca: _Short = ""
    smtp_user: _Short = ""
    smtp_password: Secret = Secret()
    smtp_from: _Short = ""
    smtp_timeout: _Seconds = 10.0
    subject: _Short = "Your link to sign in"
    text: str = _TEXT

    def __post_init__(self) -> None:
        """Raises ValueError for what no mail could be made of. No message quotes a value."""
        _check_links(self)
        _check_template("subject", self.subject, may=("email", "minutes"), must=())
        _check_template("text", self.text, may=("link", "email", "minutes"), must=("link",))
        if len(self.text) > _MOST_TEXT:
            raise ValueError(f"The setting text has at most {_MOST_TEXT} characters")
        if not self.subject.isprintable() or not self.subject.strip():
            raise ValueError("The setting subject is one line of text")
        _check_server(self)

    @property
    def can_mail(self) -> bool:
        """Whether links can be mailed."""
        return bool(self.smtp_host and self.smtp_from and (self.url_template or self.base_url))

    @property
    def is_incomplete(self) -> bool:
        """Whether a mail server is named, and something else is missing to send links by it."""
        return bool(self.smtp_host) and not self.log_links and not self.can_mail

    @property
    def gives_links(self) -> bool:
        """Whether anybody can get a link."""
        return self.log_links or self.can_mail

    @property
    def port(self) -> int:
        """The port of the mail server."""
        return self.smtp_port or {"starttls": 587, "tls": 465, "none": 25}[self.smtp_security]

    def link(self, code: str, path: str = VERIFY_PATH) -> str:
        """Returns the link with a code; relative when neither a template nor a base URL is set.

        Args:
            code: the code.
            path: of this server, where the link leads without a template.
        """
        if self.url_template:
            return self.url_template.format(code=code)
        return f"{self.base_url.rstrip('/')}{path}?code={code}"


def check_authorities(path: str) -> None:
    """Raises ValueError unless a file has certificates to check a mail server's against. Blocks.

    The empty path stands for those of the system.
    """
    import ssl

    if not path:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(path)
    except OSError:
        raise ValueError("it is a file in PEM with certificates; it can't be read, or has none") from None


def _check_links(settings: MagicLinkSettings) -> None:
    if settings.url_template:
        _check_template("url_template", settings.url_template, may=("code",), must=("code",))
        template = settings.url_template
        if not _URL.fullmatch(template) or template.lower().startswith(_SCRIPTS):
            raise ValueError("The setting url_template is an absolute URL, such as https://host/?code={code}")
    if settings.base_url and not _BASE_URL.fullmatch(settings.base_url):
        raise ValueError("The setting base_url is an http or https URL without a query")


def _check_server(settings: MagicLinkSettings) -> None:
    if settings.smtp_host and not _HOST.fullmatch(settings.smtp_host):
        raise ValueError("The setting smtp_host is the name or address of a host; its port is smtp_port")
    if settings.smtp_from and not _ADDRESS.fullmatch(settings.smtp_from):
        raise ValueError("The setting smtp_from is name@host, or Name <name@host>")
    if settings.smtp_password and settings.smtp_security == "none":
        raise ValueError("The setting smtp_password is not sent without TLS: smtp_security must not be none")


def _check_template(name: str, template: str, *, may: tuple[str, ...], must: tuple[str, ...]) -> None:
    """Raises ValueError unless a template names what it must, and nothing but what it may."""
    try:
        parts = list(Formatter().parse(template))
    except ValueError:
        raise ValueError(f"The setting {name} has a brace without its other half; {{{{ is a brace") from None
    named = set()
    for _, field, form, conversion in parts:
        if field is None:
            continue
        if field not in may or form or conversion:
            allowed = ", ".join(f"{{{one}}}" for one in may)
            raise ValueError(f"The setting {name} has something else in braces than {allowed}")
        named.add(field)
    for one in must:
        if one not in named:
            raise ValueError(f"The setting {name} does not name {{{one}}}")
