"""Errors of the plugin's own; its descriptor declares their codes."""

from __future__ import annotations

from svc.errors import SvcError

__all__ = ["Incomplete"]


class Incomplete(SvcError):
    """A command did most of its work and left items out; each of them was named."""

    code = "INCOMPLETE"
    exit_code = 12
