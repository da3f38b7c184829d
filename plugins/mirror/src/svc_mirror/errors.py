"""Errors of the command, each with its exit code."""

from __future__ import annotations

from svc.errors import Conflict

__all__ = ["ConflictsKept", "MassDeletion"]


class ConflictsKept(Conflict):
    """A file was changed on both sides: both were kept, and the command named them."""


class MassDeletion(Conflict):
    """So much would be deleted that it may be a mistake: nothing was, until somebody says yes."""
