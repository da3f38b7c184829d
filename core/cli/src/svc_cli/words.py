"""What an error says of a request, said of the options of a command."""

from __future__ import annotations

from collections.abc import Mapping

from svc.errors import SvcError

__all__ = ["ShellWords", "say_in_shell_words"]

ShellWords = Mapping[tuple[str, str], str]
"""By a member of an error's details and its value: the message that names the command's option instead."""


def say_in_shell_words(error: SvcError, words: ShellWords) -> None:
    """Gives an error the message that a table has for it, if there is one.

    Args:
        error: the error; its message is replaced.
        words: the table of the command.
    """
    for (member, value), message in words.items():
        if error.details.get(member) == value:
            error.message = message
