"""``svc webhook``: list, add, change, test and remove webhooks, and look at what became of their events."""

from __future__ import annotations

import click
from msgspec import UNSET

from svc_cli import (
    Source,
    json_option,
    print_json,
    print_result,
    print_table,
    source_options,
    terminal_text,
    time_text,
)
from svc_events_webhook import operations as op
from svc_events_webhook.models import (
    Delivery,
    DeliveryQuery,
    NewWebhook,
    RetryBody,
    RotateBody,
    ShownWebhook,
    WebhookChange,
)

__all__ = ["webhook"]

_FORMATS = click.Choice(["envelope", "cloudevents", "cloudevents-binary"])


@click.group(short_help="Lists, adds and tests webhooks.")
def webhook() -> None:
    """Webhooks: events are sent to URLs, signed, in order, until they are taken."""


@webhook.command("list")
@source_options
@json_option
def list_(*, source: Source, as_json: bool) -> None:
    """Lists webhooks, and how their deliveries go."""
    found = source.call(op.list_webhooks).webhooks
    if as_json:
        print_json(found)
        return
    rows = [
        (
            terminal_text(one.id),
            terminal_text(one.url),
            terminal_text(",".join(one.events) or "all"),
            terminal_text(_state(one)),
        )
        for one in found
    ]
    print_table(rows, ("ID", "URL", "EVENTS", "STATE"))


@webhook.command()
@click.argument("target", metavar="URL")
@click.option("--id", "webhook_id", metavar="ID", help="Its id; one is made if there is none.")
@click.option("--type", "types", metavar="NAME", multiple=True, help="Only events of this type; repeatable.")
@click.option("--path-prefix", "prefix", metavar="PREFIX", help="Only events with a path that begins so.")
@click.option("--user", metavar="USER", help="Only what this user may see.")
@click.option("--disabled", is_flag=True, help="Deliver nothing until it is enabled.")
@click.option("--format", "form", type=_FORMATS, default="envelope", show_default=True, help="What is sent.")
@source_options
@json_option
def add(
    *,
    target: str,
    webhook_id: str | None,
    types: tuple[str, ...],
    prefix: str | None,
    user: str | None,
    form: str,
    disabled: bool,
    source: Source,
    as_json: bool,
) -> None:
    """Adds a webhook, and prints its secret, which nothing shows again."""
    wanted = NewWebhook(
        url=target,
        id=webhook_id,
        events=list(types),
        path_prefix=prefix,
        user_id=user,
        enabled=not disabled,
        format=form,  # type: ignore[arg-type]  # one of the choices
    )
    made = source.call(op.add_webhook, wanted)
    text = f"added {terminal_text(made.webhook.id)}\nsecret: {made.secret}"
    print_result(made, text, as_json=as_json)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@source_options
@json_option
def enable(*, webhook_id: str, source: Source, as_json: bool) -> None:
    """Lets a webhook get what happens from now on."""
    changed = source.call(op.change_webhook, webhook_id, WebhookChange(enabled=True))
    print_result(changed, f"enabled {terminal_text(changed.id)}", as_json=as_json)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@source_options
@json_option
def disable(*, webhook_id: str, source: Source, as_json: bool) -> None:
    """Lets a webhook get nothing; what happens meanwhile is not made up for."""
    changed = source.call(op.change_webhook, webhook_id, WebhookChange(enabled=False))
    print_result(changed, f"disabled {terminal_text(changed.id)}", as_json=as_json)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@click.option("--to", "target", metavar="URL", help="Where events go to from now on.")
@click.option(
    "--type", "types", metavar="NAME", multiple=True, help="Only events of this type; repeatable; '' for all."
)
@click.option(
    "--path-prefix", "prefix", metavar="PREFIX", help="Only events with a path that begins so; '' for all."
)
@source_options
@json_option
def change(
    *,
    webhook_id: str,
    target: str | None,
    types: tuple[str, ...],
    prefix: str | None,
    source: Source,
    as_json: bool,
) -> None:
    """Changes where a webhook goes to, and what it gets."""
    wanted = WebhookChange(
        url=UNSET if target is None else target,
        events=[name for name in types if name] if types else UNSET,
        path_prefix=UNSET if prefix is None else prefix or None,
    )
    changed = source.call(op.change_webhook, webhook_id, wanted)
    print_result(changed, f"changed {terminal_text(changed.id)}", as_json=as_json)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@source_options
@json_option
def remove(*, webhook_id: str, source: Source, as_json: bool) -> None:
    """Removes a webhook with its secret."""
    removed = source.call(op.remove_webhook, webhook_id)
    print_result(removed, f"removed {terminal_text(webhook_id)}", as_json=as_json)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@click.option(
    "--hours",
    type=click.FloatRange(0, 720),
    default=24.0,
    show_default=True,
    help="For how long the old secret signs too.",
)
@source_options
@json_option
def rotate(*, webhook_id: str, hours: float, source: Source, as_json: bool) -> None:
    """Gives a webhook a new secret, and prints it."""
    made = source.call(op.rotate_secret, webhook_id, RotateBody(hours=hours))
    text = f"secret: {made.secret}"
    if made.old_secret_until is not None:
        text += f"\nthe old one signs too until {time_text(made.old_secret_until)}"
    print_result(made, text, as_json=as_json)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@source_options
@json_option
def test(*, webhook_id: str, source: Source, as_json: bool) -> None:
    """Sends an event of the type 'test', and shows what the receiver answered. Exits with 1 if it failed."""
    done = source.call(op.test_webhook, webhook_id)
    print_result(done, _told(done), as_json=as_json)
    if done.error is not None:
        click.get_current_context().exit(1)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@click.option("--since", metavar="EVENT", help="Id of an event behind which to go on, earlier or later.")
@source_options
@json_option
def retry(*, webhook_id: str, since: str | None, source: Source, as_json: bool) -> None:
    """Tries at once what waits after failures; with --since delivers again, or leaves out."""
    shown = source.call(op.retry_webhook, webhook_id, RetryBody(since))
    print_result(shown, f"{terminal_text(shown.id)} is tried at once", as_json=as_json)


@webhook.command()
@click.argument("webhook_id", metavar="ID")
@click.option("-n", "--limit", type=click.IntRange(1, 1000), default=20, show_default=True, help="So many.")
@source_options
@json_option
def deliveries(*, webhook_id: str, limit: int, source: Source, as_json: bool) -> None:
    """Lists the tries of the last days, the newest first."""
    found = source.call(op.list_deliveries, webhook_id, DeliveryQuery(limit=limit)).deliveries
    if as_json:
        print_json(found)
        return
    rows = [
        (
            time_text(one.at),
            one.event_id,
            terminal_text(one.event_type),
            str(one.status or "-"),
            str(one.took_ms),
            terminal_text((one.error or one.answer).partition("\n")[0][:60] or "-"),
        )
        for one in found
    ]
    print_table(rows, ("TIME", "EVENT", "TYPE", "STATUS", "MS", "ANSWER"))


def _state(found: ShownWebhook) -> str:
    if not found.enabled:
        return "disabled"
    if found.failing_since is not None:
        return f"failing since {time_text(found.failing_since)}: {found.error}"
    if found.place is None:
        return "waits for the background process"
    return "up to date" if not found.commits_behind else f"{found.commits_behind} commits behind"


def _told(done: Delivery) -> str:
    outcome = "taken" if done.error is None else terminal_text(done.error)
    status = "" if done.status is None else f" ({done.status})"
    answer = terminal_text(done.answer.strip())
    return f"{outcome}{status} in {done.took_ms} ms" + (f"\n{answer}" if answer else "")
