"""The responders of questions: a body comes, the driver answers, a body goes."""

from __future__ import annotations

import falcon
from svc_sync.api import MAXIMUM_QUESTION, answer_question

from svc.errors import PayloadTooLarge
from svc.plugin import SvcRequest, body_stream, send_stream

__all__ = ["ask_for_objects", "ask_for_registers", "ask_for_tree", "ask_to_pull", "say_hello"]

_CBOR = "application/cbor"


def say_hello(req: SvcRequest, resp: falcon.Response) -> None:
    """The answer to ``hello``."""
    _answer(req, resp, "hello")


def ask_for_registers(req: SvcRequest, resp: falcon.Response) -> None:
    """The answer to ``registers``."""
    _answer(req, resp, "registers")


def ask_for_tree(req: SvcRequest, resp: falcon.Response) -> None:
    """The answer to ``tree``."""
    _answer(req, resp, "tree")


def ask_for_objects(req: SvcRequest, resp: falcon.Response) -> None:
    """The answer to ``objects``."""
    _answer(req, resp, "objects")


def ask_to_pull(req: SvcRequest, resp: falcon.Response) -> None:
    """The answer to ``pull``."""
    _answer(req, resp, "pull")


def _answer(req: SvcRequest, resp: falcon.Response, question: str) -> None:
    payload = body_stream(req, MAXIMUM_QUESTION).read(-1)
    if len(payload) > MAXIMUM_QUESTION:
        raise PayloadTooLarge(f"A question has at most {MAXIMUM_QUESTION} bytes.", limit=MAXIMUM_QUESTION)
    answer = answer_question(req.context.database, question, payload)
    send_stream(resp, iter((answer,)), len(answer), content_type=_CBOR)
