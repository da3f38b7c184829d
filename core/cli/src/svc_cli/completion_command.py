"""``svc completion``."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

__all__ = ["completion"]


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Prints the completion script of a shell.

    For bash: eval "$(svc completion bash)" in ~/.bashrc; for zsh the same in ~/.zshrc; for fish:
    svc completion fish > ~/.config/fish/completions/svc.fish
    """
    import svc_cli.shells  # noqa: F401 - registers what completes
    from svc_cli.program import root

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(root, {}, "svc", "_SVC_COMPLETE").source())
