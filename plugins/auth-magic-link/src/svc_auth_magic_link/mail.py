"""Mail: one message with a link, and how it reaches the mail server.

A server's certificate is always checked, and where TLS was asked for nothing is said without it. What a
failure is told of never holds the message, which has the code in it.
"""

from __future__ import annotations

import contextlib
import re
import smtplib
import ssl
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP as POLICY
from email.utils import formatdate, make_msgid, parseaddr

from svc_auth_magic_link.configuration import CODE_MINUTES, MagicLinkSettings
from svc_auth_magic_link.conversation import Conversation

__all__ = ["MailRefused", "describe_failure", "mail_address", "make_message", "send"]

_LONGEST_LINE = 990
"""Bytes of a line that may stand in a mail as it is (RFC 5321, 4.5.3.1.6)."""

_STATUS = re.compile(rb"[245]\.[0-9]{1,3}\.[0-9]{1,3}(?=\s|\Z)")
"""An enhanced status code (RFC 3463)."""


class MailRefused(Exception):
    """The mail server will not take the message however often it is asked."""


def mail_address(username: str) -> str | None:
    """Returns the address that a username is, or None when mail can't be sent to it."""
    if not username.isprintable():
        return None
    # The library takes letters of other scripts in no local part; RFC 6531 does, and servers by SMTPUTF8.
    plain = "".join(letter if letter.isascii() else "x" for letter in username)
    try:
        address = Address(addr_spec=plain)
    except (MessageError, ValueError, IndexError, AttributeError):
        return None
    return username if address.domain and address.addr_spec == plain else None


def make_message(settings: MagicLinkSettings, address: str, link: str) -> EmailMessage:
    """Returns the mail with a link.

    Args:
        settings: templates and sender.
        address: to whom.
        link: the link.
    """
    names = {"email": address, "minutes": CODE_MINUTES}
    message = EmailMessage(policy=POLICY)
    message["From"] = settings.smtp_from
    message["To"] = address
    message["Subject"] = settings.subject.format(**names)
    message["Date"] = formatdate()
    message["Message-ID"] = make_msgid(domain=parseaddr(settings.smtp_from)[1].partition("@")[2] or None)
    message["Auto-Submitted"] = "auto-generated"
    text = settings.text.format(link=link, **names)
    # As it is where lines may be that long: then the link is whole in the source of the mail too.
    message.set_content(text, cte=("7bit" if text.isascii() else "8bit") if _has_short_lines(text) else None)
    return message


def send(settings: MagicLinkSettings, address: str, message: EmailMessage) -> None:
    """Hands a message to the mail server; blocks, for ``smtp_timeout`` at each step, six times that in all.

    Raises:
        MailRefused: it was refused for good.
        OSError: it could not be handed over now: no connection, no TLS, a wrong certificate, or "try later".
    """
    tls = ssl.create_default_context(cafile=settings.smtp_ca or None)
    tls.minimum_version = ssl.TLSVersion.TLSv1_2
    at_once = tls if settings.smtp_security == "tls" else None
    connection = Conversation(settings.smtp_host, settings.port, settings.smtp_timeout, at_once)
    try:
        _converse(connection, tls, settings, address, message)
    except smtplib.SMTPRecipientsRefused as error:
        code, text = next(iter(error.recipients.values()), (550, b""))
        raise _refusal(code, text) from None
    except smtplib.SMTPResponseException as error:
        raise _refusal(error.smtp_code, error.smtp_error) from None
    except OSError:
        if connection.has_timed_out:
            raise TimeoutError(f"it took longer than {connection.longest_s:g} s") from None
        raise
    finally:
        connection.close()


def describe_failure(error: BaseException) -> str:
    """Returns what to log of an error of ``send``; no part of the message, nor of an answer, is in it."""
    text = "".join(letter if letter.isprintable() else " " for letter in str(error)[:300])
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _converse(
    connection: Conversation,
    tls: ssl.SSLContext,
    settings: MagicLinkSettings,
    address: str,
    message: EmailMessage,
) -> None:
    connection.begin()
    if settings.smtp_security == "starttls":
        connection.starttls(context=tls)
    if settings.smtp_user:
        connection.login(settings.smtp_user, settings.smtp_password.reveal())
    connection.send_message(message, parseaddr(settings.smtp_from)[1], [address])
    with contextlib.suppress(OSError):
        # The mail is taken: what the server says now changes nothing.
        connection.quit()


def _refusal(code: int, text: bytes | str) -> Exception:
    """What an answer means. Its text may quote the address or the message: its numbers alone are told."""
    said = text if isinstance(text, bytes) else text.encode("utf-8", "replace")
    status = _STATUS.match(said)
    told = (
        f"{code}{' ' + status[0].decode() if status else ''}"
        if 200 <= code <= 599
        else "something else than SMTP"
    )
    message = f"the mail server answered {told}"
    return MailRefused(message) if 500 <= code <= 599 else OSError(message)


def _has_short_lines(text: str) -> bool:
    return all(len(line.encode()) <= _LONGEST_LINE for line in text.splitlines())
