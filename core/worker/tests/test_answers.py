"""What applications give, as it arrives at the client."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest
from wire import Client


def lines_of(log: str, mark: str) -> list[str]:
    return [line for line in log.splitlines() if mark in line]


def test_a_stream_of_unknown_length_comes_in_chunks(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/stream")
        assert answer.get("transfer-encoding") == "chunked"
        assert answer.body == b"onetwo" + b"x" * 100_000
        assert client.ask("/empty").get("content-length") == "0"


def test_the_one_piece_of_a_list_gets_a_length(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/unread")
        assert (answer.get("content-length"), answer.body) == ("6", b"unread")


def test_head_and_small_body_leave_in_one_segment(server) -> None:
    with Client(server.address) as client:
        client.send(b"GET /unread HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.socket.recv(65536).endswith(b"\r\n\r\nunread")


@pytest.mark.parametrize("target", ["/", "/stream", "/unread", "/file"])
def test_head_has_the_head_of_get_and_no_body(server, target: str) -> None:
    with Client(server.address) as client:
        full, bare = client.ask(target), client.ask(target, "HEAD")
        assert bare.status == full.status
        for name in ("content-type", "etag"):
            assert bare.get(name) == full.get(name)
        if bare.get("content-length") is not None and target != "/":
            assert bare.get("content-length") == full.get("content-length")
        assert client.ask("/").status == 200


def test_204_and_304_have_no_body_even_when_the_application_gives_one(server) -> None:
    with Client(server.address) as client:
        nothing = client.ask("/nothing")
        assert nothing.status == 204
        assert nothing.get("content-length") is None
        unchanged = client.ask("/unchanged")
        assert (unchanged.status, unchanged.get("content-length")) == (304, "5")
        assert client.ask("/").status == 200


@pytest.mark.parametrize(
    "target", ["/fail-before", "/twice", "/split-header", "/text-body", "/short", "/leave"]
)
def test_a_failure_before_the_head_is_a_500_in_our_form(server, target: str) -> None:
    with Client(server.address) as client:
        answer = client.ask(target)
        if target == "/short":
            assert (answer.complete, answer.body) == (False, b"short")
        else:
            assert answer.status == 500
            assert answer.json["code"] == "INTERNAL_ERROR"
            assert b"before" not in answer.body
            assert answer.get("x-request-id")
            assert answer.get("set-cookie") is None
        assert client.is_at_end()
    with Client(server.address) as client:
        assert client.ask("/").status == 200


def test_a_failure_behind_the_head_cuts_the_answer(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/fail-after")
        assert not answer.complete
    assert lines_of(server.log, "RuntimeError: after")


def test_an_answer_never_exceeds_its_declared_length(server) -> None:
    with Client(server.address) as client:
        assert client.ask("/long").body == b"long"
        assert client.ask("/").status == 200


def test_exc_info_replaces_a_head_that_is_not_out(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/repair")
        assert (answer.status, answer.body) == (409, b"repaired")
        assert answer.get("x-first") is None
        assert answer.get("x-second") == "2"


def test_exc_info_cuts_an_answer_whose_head_is_out(server) -> None:
    with Client(server.address) as client:
        assert not client.ask("/too-late").complete
    assert lines_of(server.log, "ValueError: changed its mind")


def test_the_old_write_function_and_the_iterable_make_one_body(server) -> None:
    with Client(server.address) as client:
        assert client.ask("/writes").body == b"abcdefghi"


def test_fields_that_belong_to_the_connection_are_the_server_s_alone(server) -> None:
    with Client(server.address) as client:
        answer = client.ask("/hop")
        assert answer.get("transfer-encoding") is None
        assert answer.get("keep-alive") is None
        assert answer.get("connection") == "close"
        assert answer.body == b"x"
        assert client.is_at_end()


def test_a_wrapped_file_is_sent_from_where_it_stands(server, content_file) -> None:
    content = content_file.read_bytes()
    with Client(server.address) as client:
        for start in (0, 7, len(content) - 1, len(content)):
            answer = client.ask(f"/file?{start}")
            assert answer.get("content-length") == str(len(content) - start)
            assert answer.body == content[start:]


def test_a_wrapped_file_closes_an_old_connection_at_its_end(server, content_file) -> None:
    with Client(server.address) as client:
        client.send(b"GET /file HTTP/1.0\r\n\r\n")
        answer = client.answer()
        assert answer is not None
        assert answer.body == content_file.read_bytes()


def test_parts_of_files_may_stand_among_bytes(server, content_file) -> None:
    with Client(server.address) as client:
        answer = client.ask("/segments")
        assert answer.body == b"head:" + content_file.read_bytes()[10:100_010] + b":tail"


def test_a_client_that_leaves_during_an_answer_leaves_no_traceback(server) -> None:
    before = server.log.count("Traceback")
    for _ in range(3):
        with Client(server.address) as client:
            client.send(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
            assert client.socket.recv(1000)
    with Client(server.address) as client:
        assert client.ask("/").status == 200
    assert server.log.count("Traceback") == before


def test_wsgi_errors_reaches_the_log(server) -> None:
    with Client(server.address) as client:
        assert client.ask("/complain").status == 200
    assert "a complaint" in server.log


def test_one_endless_download_does_not_stop_the_others(server) -> None:
    with Client(server.address) as greedy, Client(server.address) as client:
        greedy.send(b"GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")
        for _ in range(20):
            assert greedy.socket.recv(65536)
            assert client.ask("/").status == 200


def test_the_date_has_the_form_of_http(server) -> None:
    with Client(server.address) as client:
        date = client.ask("/").get("date")
    assert date is not None
    assert parsedate_to_datetime(date).tzinfo is not None
    assert date.endswith(" GMT")
