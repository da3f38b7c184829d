"""What the shells are given to complete: only words that mean the same with and without quotes.

A shell inserts a completion as it is, and runs what stands in it. Names of files, snapshots and users are
made by others: a word that a shell would not take as it stands is left out.
"""

from __future__ import annotations

from typing import Any, ClassVar, cast

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    ShellComplete,
    add_completion_class,
    get_completion_class,
)

__all__ = ["is_plain_word"]

_PLAIN = frozenset("/._-+@:,=%~")
_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' response type value
    response=$(env COMP_WORDS="${COMP_WORDS[*]}" COMP_CWORD="$COMP_CWORD" %(complete_var)s=bash_complete "$1")
    while IFS=',' read -r type value; do
        if [[ $type == 'dir' ]]; then
            COMPREPLY=()
            compopt -o dirnames
        elif [[ $type == 'file' ]]; then
            COMPREPLY=()
            compopt -o default
        elif [[ $type == 'plain' ]]; then
            COMPREPLY+=("$value")
        fi
    done <<< "$response"
    return 0
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


def is_plain_word(text: str) -> bool:
    """Whether no shell sees more in a text than its characters."""
    if text.startswith(("~", "=", "%")) or "=~" in text or ":~" in text:
        return False
    return all(character.isalnum() or character in _PLAIN for character in text)


class _PlainWords(ShellComplete):
    """Leaves out what a shell would not take as it stands, and what would be read as an option."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        """Those of click without the words that are not plain."""
        items = super().get_completions(args, incomplete)
        return [item for item in items if _is_offered(item, incomplete)]


class _Bash(_PlainWords, BashComplete):
    """Bash, whose script neither splits a word nor takes it as a pattern."""

    source_template: ClassVar[str] = _BASH


def _is_offered(item: CompletionItem[Any], incomplete: str) -> bool:
    value = str(item.value)
    if not (item.help or "").isprintable():
        item.help = None
    if item.type != "plain":
        # The shell itself completes names on its disk, from what was typed.
        return value.isprintable()
    return is_plain_word(value) and (incomplete.startswith("-") or not value.startswith("-"))


def _register() -> None:
    add_completion_class(_Bash)
    for name in ("zsh", "fish", "powershell"):
        kind = get_completion_class(name)
        if kind is not None:
            plain = type(f"_Plain{kind.__name__}", (_PlainWords, kind), {})
            add_completion_class(cast("type[ShellComplete]", plain), name)


_register()
