"""What becomes of a request after its answer: failures, repetitions, floods, and the end of the process."""

from __future__ import annotations

import logging
import smtplib
import threading
import time
from collections.abc import Callable

import pytest

from svc_auth_magic_link.codes import create_code, prune_codes, use_code
from svc_auth_magic_link.configuration import MagicLinkSettings
from svc_auth_magic_link.delivery import Delivery
from svc_auth_magic_link.mail import MailRefused
from svc_auth_magic_link.timed_queue import TimedQueue
from svc_auth_self.api import Account

ANN = "ann@example.com"
ANN_ID = "0198f9a2-6d5c-7b11-8000-2d1f3c5e7a90"
SETTINGS = MagicLinkSettings(base_url="https://svc.example", smtp_host="mail.example", smtp_from="a@b")


class People:
    """Accounts of one."""

    def find(self, user_id: str) -> Account | None:
        return None

    def find_by_name(self, name: str) -> Account | None:
        return Account(user_id=ANN_ID, username=ANN) if name == ANN else None

    def stamp(self) -> object:
        return None


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)


def codes_of(database) -> int:
    return database.system().entry_count(("magic-links",))


@pytest.fixture
def delivery(database, mails):
    made = Delivery(database, delays=(0.0, 0.0), retries=(0.0, 0.0, 0.0), transport=mails.take)
    yield made
    made.stop()


def test_a_mail_that_can_not_be_sent_now_is_tried_again_with_another_code(
    delivery, mails, database, caplog
) -> None:
    caplog.set_level(logging.INFO)
    mails.failures = [
        ConnectionRefusedError("refused"),
        TimeoutError("timed out"),
        smtplib.SMTPException("odd"),
    ]
    delivery.request(ANN, People(), SETTINGS)
    _, message = mails.next()
    texts = {sent.get_content() for _, sent in mails.attempts}
    assert len(texts) == len(mails.attempts) == 4
    assert codes_of(database) == 1, "codes that nobody was sent are gone"
    code = message.get_content().partition("code=")[2].split()[0]
    assert code not in caplog.text
    assert caplog.text.count("it is tried again") == 3
    assert use_code(database, code).user_id == ANN_ID


def test_a_mail_is_given_up_at_last(delivery, mails, database, caplog) -> None:
    mails.failures = [ConnectionRefusedError("refused")] * 4
    delivery.request(ANN, People(), SETTINGS)
    wait_for(lambda: "it is given up" in caplog.text)
    assert len(mails.attempts) == 4
    assert codes_of(database) == 0
    assert ANN not in caplog.text
    assert "ConnectionRefusedError: refused" in caplog.text


def test_a_mail_that_was_refused_is_not_tried_again(delivery, mails, caplog) -> None:
    mails.failures = [MailRefused("the mail server answered 550: no such mailbox")]
    delivery.request(ANN, People(), SETTINGS)
    wait_for(lambda: "it is given up" in caplog.text)
    assert len(mails.attempts) == 1
    assert "550: no such mailbox" in caplog.text


def test_an_error_that_could_hold_the_code_is_told_of_by_its_type(delivery, mails, caplog) -> None:
    mails.failures = [ValueError("https://svc.example/?code=secret")] * 4
    delivery.request(ANN, People(), SETTINGS)
    wait_for(lambda: "it is given up" in caplog.text)
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


def test_a_username_that_is_no_address_gets_no_mail_and_no_code(delivery, mails, database, caplog) -> None:
    class Odd(People):
        def find_by_name(self, name: str) -> Account | None:
            return Account(user_id=ANN_ID, username="ann")

    delivery.request("ann", Odd(), SETTINGS)
    wait_for(lambda: "no mail address" in caplog.text)
    assert mails.attempts == []
    assert database.system().get(("magic-links",)) is None


def test_a_request_that_fails_stops_no_other(delivery, mails, caplog) -> None:
    class Failing(People):
        def find_by_name(self, name: str) -> Account | None:
            raise RuntimeError(f"a secret of {name}")

    delivery.request(ANN, Failing(), SETTINGS)
    delivery.request(ANN, People(), SETTINGS)
    assert mails.next()[0] == ANN
    assert "RuntimeError" in caplog.text
    assert "a secret" not in caplog.text


def test_a_mail_server_that_hangs_holds_up_no_request(database, caplog) -> None:
    going, entered = threading.Event(), threading.Event()

    def hang(*_: object) -> None:
        entered.set()
        assert going.wait(30)

    delivery = Delivery(database, delays=(0.0, 0.0), transport=hang)
    asked = []

    class Counting(People):
        def find_by_name(self, name: str) -> Account | None:
            asked.append(name)
            return super().find_by_name(name)

    delivery.request(ANN, Counting(), SETTINGS)
    assert entered.wait(30)
    for number in range(100):
        delivery.request(f"{number}@example.com", Counting(), SETTINGS)
    wait_for(lambda: len(asked) == 101)
    delivery.request(ANN, Counting(), SETTINGS)
    wait_for(lambda: len(asked) == 102)
    delivery.stop()
    assert "links that were not sent, as the server stops: 2" in caplog.text
    going.set()


def test_what_waits_when_the_server_stops_is_sent_at_once(database, mails, caplog) -> None:
    delivery = Delivery(database, delays=(60.0, 60.0), transport=mails.take)
    mails.failures = [ConnectionRefusedError("refused")]
    for _ in range(3):
        delivery.request(ANN, People(), SETTINGS)
    delivery.stop()
    assert len(mails.attempts) == 3
    assert mails.sent.qsize() == 2
    assert "it is given up" in caplog.text, "nothing is tried again after the end"
    delivery.request(ANN, People(), SETTINGS)
    assert "a request for a link was dropped" in caplog.text


def test_requests_that_are_dropped_at_a_stop_are_counted(database, mails, caplog) -> None:
    going = threading.Event()

    class Slow(People):
        def find_by_name(self, name: str) -> Account | None:
            going.wait(30)
            return None

    delivery = Delivery(database, delays=(0.0, 0.0), transport=mails.take)
    for _ in range(3):
        delivery.request(ANN, Slow(), SETTINGS)
    delivery.stop()
    going.set()
    assert "requests for links that were dropped, as the server stops: 3" in caplog.text


# -- the queue ----------------------------------------------------------------------------------------------


def test_a_queue_deals_with_what_is_due_first() -> None:
    done: list[int] = []
    waiting = TimedQueue("test", done.append, 10)
    waiting.put(3, 0.3)
    waiting.put(1, 0.0)
    waiting.put(2, 0.1)
    wait_for(lambda: len(done) == 3)
    assert done == [1, 2, 3]
    waiting.stop()


def test_a_queue_takes_no_more_than_it_has_room_for() -> None:
    done: list[int] = []
    waiting = TimedQueue("test", done.append, 2)
    assert [waiting.put(number, 60) for number in range(4)] == [True, True, False, False]
    assert waiting.stop() == 0
    assert done == [0, 1], "what waits is dealt with at once when it stops"
    assert waiting.put(5, 0) is False, "it is stopped"


def test_a_stop_lasts_no_longer_than_it_may() -> None:
    going = threading.Event()
    waiting = TimedQueue("test", lambda item: going.wait(30), 5)
    for number in range(3):
        waiting.put(number, 0)
    began = time.monotonic()
    assert waiting.stop(0.2) == 3, "with the one at work"
    assert time.monotonic() - began < 5
    going.set()


def test_a_stopped_queue_leaves_no_thread() -> None:
    waiting = TimedQueue("svc-test-queue", lambda item: None, 2)
    waiting.put(1, 60)
    waiting.stop()
    wait_for(lambda: not [thread for thread in threading.enumerate() if thread.name == "svc-test-queue"])


def test_a_stop_waits_for_the_item_at_work() -> None:
    began, ends, ended = threading.Event(), threading.Event(), threading.Event()

    def handle(_: int) -> None:
        began.set()
        assert ends.wait(60)
        ended.set()

    queue = TimedQueue("svc-test-busy", handle, 2)
    queue.put(1, 0)
    assert began.wait(60)
    threading.Timer(0.05, ends.set).start()
    queue.stop()
    assert ended.is_set()


def test_a_queue_without_items_has_no_thread() -> None:
    TimedQueue("svc-test-idle", lambda item: None, 2)
    assert not [thread for thread in threading.enumerate() if thread.name == "svc-test-idle"]


# -- what nobody has used -----------------------------------------------------------------------------------


def test_codes_that_have_expired_are_removed_in_pages(database) -> None:
    now_ms = time.time_ns() // 1_000_000
    with database.transaction() as transaction:
        for number in range(1_200):
            record = b'{"user_id": "x", "created_at": 1, "expires_at": 2}'
            transaction.put_system(("magic-links", f"{number:064x}"), record)
        transaction.put_system(("magic-links", "odd"), b"not a record")
    good = create_code(database, ANN_ID, ANN, now_ms)
    assert prune_codes(database, now_ms) == 1_201
    assert prune_codes(database, now_ms) == 0
    assert codes_of(database) == 1
    assert use_code(database, good, now_ms).user_id == ANN_ID


def test_there_is_nothing_to_remove_in_a_new_database(database) -> None:
    assert prune_codes(database) == 0
