"""From a request to a mail, outside of the request: who asks learns nothing from the answer or its time.

A request is taken down and answered. A moment later, which is drawn at random, a thread looks whether there
is an active user of that name, and hands those on to a second thread, which makes a code and sends the link.
The second one may wait long for a mail server; the first never does, so that a flood of unknown addresses is
dropped as fast as it comes.
"""

from __future__ import annotations

import logging
import random
import weakref
from collections.abc import Callable

from msgspec import Struct, structs

from svc.plugin import Database, run_blocking
from svc_auth_magic_link.codes import create_code, drop_code
from svc_auth_magic_link.configuration import VERIFY_PATH, MagicLinkSettings
from svc_auth_magic_link.mail import MailRefused, describe_failure, mail_address, make_message, send
from svc_auth_magic_link.timed_queue import TimedQueue
from svc_auth_self.api import Accounts

__all__ = ["RETRY_SECONDS", "Delivery", "delivery_of", "stop_delivery"]

RETRY_SECONDS = (5.0, 30.0, 120.0)
"""How long after a failure a mail is tried again; after the last one it is given up."""

_MOST_REQUESTS = 10_000
_MOST_MAILS = 1000
_DELAY_SECONDS = (0.1, 0.6)
_STOP_SECONDS = 1.0

_log = logging.getLogger("svc.plugin.auth.magic-link")


class _Request(Struct, frozen=True):
    """Somebody asks for a link."""

    email: str
    accounts: Accounts
    settings: MagicLinkSettings
    path: str


class _Mail(Struct, frozen=True):
    """A link that is to be sent; it gets its code when it is."""

    user_id: str
    address: str
    settings: MagicLinkSettings
    path: str
    failures: int = 0


class Delivery:
    """What one process does with the requests for links to one database.

    Args:
        database: the database.
        delays: range of the seconds after which a request is looked at.
        retries: seconds to wait after each failure.
        transport: sends a mail; see ``mail.send``.
    """

    def __init__(
        self,
        database: Database,
        *,
        delays: tuple[float, float] = _DELAY_SECONDS,
        retries: tuple[float, ...] = RETRY_SECONDS,
        transport: Callable[..., None] = send,
    ) -> None:
        self._database = database
        self._delays = delays
        self._retries = retries
        self._transport = transport
        self._is_stopping = False
        self._requests = TimedQueue("svc-magic-link-requests", self._look, _MOST_REQUESTS)
        self._mails = TimedQueue("svc-magic-link-mails", self._deliver, _MOST_MAILS)

    def request(
        self, email: str, accounts: Accounts, settings: MagicLinkSettings, path: str = VERIFY_PATH
    ) -> None:
        """Takes down that somebody asks for a link, in no time, whoever that is; see ``settings.link``."""
        delay_s = random.uniform(*self._delays)
        if not self._requests.put(_Request(email, accounts, settings, path), delay_s):
            _log.warning("a request for a link was dropped: too many are waiting")

    def stop(self) -> None:
        """Sends at once what waits, as far as it goes within a second, and ends the threads.

        The rest is dropped: who waits for a mail asks again.
        """
        self._is_stopping = True
        requests = self._requests.stop(_STOP_SECONDS / 4)
        mails = self._mails.stop(_STOP_SECONDS * 3 / 4)
        if requests:
            _log.warning("requests for links that were dropped, as the server stops: %d", requests)
        if mails:
            _log.warning("links that were not sent, as the server stops: %d", mails)

    def _look(self, request: _Request) -> None:
        account = request.accounts.find_by_name(request.email)
        if account is None or not account.is_active:
            return
        # To the user's own name: another spelling of it may be the address of somebody else.
        mail = _Mail(account.user_id, account.username, request.settings, request.path)
        if not self._mails.put(mail, 0):
            _log.warning("a link for the user %s was not sent: too many are waiting", account.user_id)

    def _deliver(self, mail: _Mail) -> None:
        if mail.settings.log_links:
            link = mail.settings.link(create_code(self._database, mail.user_id, mail.address), mail.path)
            # Whoever runs the server asked for the link itself to be shown.
            _log.info("a link that signs in %s", mail.address, extra={"shown": {"link": link}})
            return
        if mail_address(mail.address) is None:
            _log.warning("no link for the user %s: the username is no mail address", mail.user_id)
            return
        self._send(mail)

    def _send(self, mail: _Mail) -> None:
        code = create_code(self._database, mail.user_id, mail.address)
        try:
            message = make_message(mail.settings, mail.address, mail.settings.link(code, mail.path))
            run_blocking(self._transport, mail.settings, mail.address, message)
        except Exception as error:  # noqa: BLE001 - whatever it is, the link did not go out
            drop_code(self._database, code)
            self._failed(mail, error)
        else:
            _log.info("sent a link to the user %s", mail.user_id)

    def _failed(self, mail: _Mail, error: Exception) -> None:
        is_last = self._is_stopping or mail.failures >= len(self._retries)
        is_final = is_last or isinstance(error, MailRefused)
        reason = describe_failure(error) if isinstance(error, MailRefused | OSError) else type(error).__name__
        if not is_final:
            again = structs.replace(mail, failures=mail.failures + 1)
            is_final = not self._mails.put(again, self._retries[mail.failures])
        level = logging.ERROR if is_final else logging.WARNING
        ending = "it is given up" if is_final else "it is tried again"
        _log.log(level, "a link could not be sent to the user %s; %s: %s", mail.user_id, ending, reason)


_deliveries: weakref.WeakKeyDictionary[Database, Delivery] = weakref.WeakKeyDictionary()


def delivery_of(database: Database) -> Delivery:
    """Returns the delivery of a database in this process."""
    return _deliveries.get(database) or _deliveries.setdefault(database, Delivery(database))


def stop_delivery(database: Database) -> None:
    """Ends the delivery of a database in this process, if there is one."""
    delivery = _deliveries.pop(database, None)
    if delivery is not None:
        delivery.stop()
