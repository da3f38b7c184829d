"""Every command says and does the same on a database file as over the URL of a server.

One story of all commands is told twice, to a file and to a server, and each line is compared: what it prints,
as text and as JSON, and its exit code. What svc makes up (ids, hashes, times) is compared by its form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import click
import pytest

from svc_blackbox.prepared import run_svc
from svc_cli.lazy_command import LazyCommand
from svc_cli.program import root
from svc_testing import start_server

# Two stories of two worlds: minutes on a machine with other work.
pytestmark = pytest.mark.timeout(400)

ONE_PLACE = {
    *("start", "background", "status", "verify", "completion", "compact", "reset-root-key"),
    *("login", "logout", "whoami", "auth-file check", "auth-file new-key", "plugins new", "plugins doctor"),
    *("share with-me", "index rebuild", "webhook enable", "webhook retry", "stats", "top"),
    *("sync status", "sync peers", "sync add", "sync remove", "sync trigger", "sync join", "sync rejoin"),
    "mirror",
    *("conflicts list", "conflicts show", "conflicts diff", "conflicts resolve"),
}
"""Commands that take only a file, only a server, or neither; those that look at one of them, or that a server
does later; and those of plugins that new databases do not have."""

COUNTING = ("gc", "task", "info", "index", "webhook")
"""Commands whose figures depend on what else is in the file."""

STORY = """
put a.txt /docs/a.txt
put a.txt /docs/b.txt --content-type text/x-test
put a.txt /docs/a.txt --create-only
put missing.txt /docs/c.txt
ls /docs
ls -l /docs
ls -R /
ls /none
cat /docs/a.txt
cat /docs/none
get /docs/a.txt out.txt
get /docs/none out.txt
load tree /tree
load tree /tree
dump copied /tree
rm /docs/b.txt
rm /docs/b.txt
rm /docs
mkdir /made
mkdir /made
mv /docs/a.txt /made
mv /made/a.txt /docs/a.txt
mv /none /made
cp /docs/a.txt /made
cp /docs/a.txt /made
cp /none /made
ln /docs/a.txt /made/link
ln /docs/a.txt /docs/a.txt
ls -l /made
rm -r /made
deleted /
deleted /none
snapshot create one
snapshot create one
snapshot create two --metadata {"a":1}
snapshot list
snapshot auto --hourly 24 --daily 7
snapshot auto --weekly 4 --off
snapshot auto --off
snapshot auto
snapshot rename two three
snapshot rename two four
snapshot delete three
snapshot delete none
put b.txt /docs/a.txt
restore /docs/a.txt --from one
restore /docs/none --from one
rm /docs/a.txt
restore /docs/a.txt
restore /docs/a.txt
restore /docs/none
snapshot restore one
snapshot restore none
fork create draft
fork create draft
fork create other --base one
fork list
fork abandon other
fork list --abandoned
merge draft
merge none
fork promote draft
log /
log -n 1 /
log /none
show HEAD
show none
history /docs/a.txt
history /docs/none
blame /docs/a.txt
diff --from one
diff --from none
export full.svcdb
import full.svcdb
promote --hash none
user add ann --email ann@example.org --tag staff
user add ann
user list
user add bob
user show ann
user show none
user set ann --username anna
user set anna --no-tags
user deactivate bob
user activate bob
group add staff --member anna
group add staff
group list
group show staff
group set staff --tag x
group add-member staff bob
group remove-member staff bob
grant add /docs --group staff --allow rl
grant list
grant list --path /docs
grant add /docs --user anna --allow r
access /docs/a.txt --as anna
access /docs/a.txt --as none
@grant grant list --path /docs --group staff => 0.grant_id
grant remove {grant}
grant remove none
group delete staff
group delete staff
share add /docs --user anna --allow r
share list /docs
share remove /docs --user anna
share link /docs --days 7 --base-url https://example.org
share links /docs
@link share links /docs => 0.key_id
share revoke-link {link}
share revoke-link none
key create --user anna --label laptop
key list
@key key list --user anna => 0.key_id
key revoke {key}
key revoke none
key rotate-signing
index suggest /tree
index show /docs
query / @filename=="a.txt"
index status /docs
query / @size>0 --select @path,@size
query / nonsense(
query /none @size>0
search a.txt
events
events --type entries_created
task list
task show none
cron add nightly gc daily
cron add nightly2 gc 0_3_*_*_*
cron list
cron disable nightly2
cron enable nightly2
cron remove nightly2
cron remove none
task run verify
gc --dry-run
gc
@task task list --type verify => 0.id
task show {task}
task cancel {task}
task watch {task}
webhook add https://example.org/hook --id hook --type entries_created --disabled
webhook add https://example.org/hook --id hook --disabled
webhook add ftp://example.org/ --id other
webhook list
webhook change hook --path-prefix /docs/
webhook change hook --to http://localhost/
webhook change none --path-prefix /docs/
webhook rotate hook
webhook disable hook
webhook test hook
webhook deliveries hook
webhook remove hook
webhook remove hook
info
plugins list
plugins info files
plugins info none
plugins config files
plugins disable history
plugins enable history
api GET /system/plugins
api GET /system/none
"""

_FORMS = (
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "UUID"),
    (r"svc_k_[\w-]+", "KEY"),
    (r"whsec_[\w+/=]+", "SECRET"),
    (r"https?://[\w.:/?=&%#-]+", "URL"),
    (r"\b[0-9a-f]{10,64}\b", "HASH"),
    (r"\b1[6-9]\d{11}\b", "MS"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( UTC|Z)?", "DATE"),
    (r"-\d{8}-\d{6}(-\d{3})?", "-STAMP"),
    # Nobody signs in to a file: its commits have no user.
    (r" (root|-)( +|\n)", " USER "),
    (r'"(user|created_by|created_by_name|actor)": (null|"UUID"|"root")', r'"\1": USER'),
    (r'"duration_ms":\d+', '"duration_ms":MS'),
    (r'actor: +UUID\n|,?\s*"actor": USER', ""),
    # A file has the views alone that its command has needed.
    (r'"views": \{[^}]*\}', '"views": {}'),
    (r"in [\d.]+ s \([\d.KMG]+B?/s\)", "in TIME"),
)


@dataclass
class World:
    """A place that the story is told to, with what was remembered of it."""

    place: str
    directory: Path
    token: str = ""
    known: dict[str, str] = field(default_factory=dict)

    def run(self, words: list[str], *more: str) -> tuple[int, str, str]:
        variables = {"TZ": "UTC", **({"SVC_TOKEN": self.token} if self.token else {})}
        done = run_svc(*words, *more, "-D", self.place, check=False, cwd=self.directory, env=variables)
        return done.returncode, done.stdout.decode(), done.stderr.decode()

    def tell(self, line: str, as_json: bool) -> tuple[int, str, str]:
        if line.startswith("@"):
            name, _, rest = line[1:].partition(" ")
            command, _, member = rest.partition(" => ")
            code, printed, said = self.run(command.split(), "--json")
            assert code == 0, (self.place, line, said)
            value = json.loads(printed)
            for step in member.split("."):
                assert value, (self.place, line)
                value = value[int(step) if step.isdigit() else step]
            self.known[name] = str(value)
            return 0, "", ""
        words = [word.replace("_", " ") if word.count("_") > 2 else word for word in line.split()]
        words = [
            self.known.get(word[1:-1], word) if re.fullmatch(r"\{\w+\}", word) else word for word in words
        ]
        code, *printed = self.run(words, *(["--json"] if as_json and takes_json(words) else []))
        shown = [self.form(text) for text in printed]
        if words[0] in COUNTING:
            shown = [re.sub(r"\d[\d,.]*( [KMG]iB)?", "N", text) for text in shown]
        return code, shown[0], shown[1]

    def form(self, text: str) -> str:
        for word in (f"{self.directory}/x.svcdb", self.place, str(self.directory)):
            text = text.replace(word, "PLACE")
        for pattern, name in _FORMS:
            text = re.sub(pattern, name, text)
        return text


def commands() -> dict[str, click.Command]:
    """All commands by their words."""

    def walk(command: click.Command, words: str) -> Iterator[tuple[str, click.Command]]:
        command = command.command if isinstance(command, LazyCommand) else command
        if isinstance(command, click.Group):
            for name, member in command.commands.items():
                yield from walk(member, f"{words} {name}".strip())
        else:
            yield words, command

    context = click.Context(root)
    found: dict[str, click.Command] = {}
    with context.scope(cleanup=False):
        for name in root.list_commands(context):
            command = root.get_command(context, name)
            assert command is not None
            found |= dict(walk(command, name))
    return found


COMMANDS = commands()


def command_of(words: list[str]) -> str:
    return next(name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS)


def takes_json(words: list[str]) -> bool:
    return any(parameter.name == "as_json" for parameter in COMMANDS[command_of(words)].params)


@pytest.fixture(scope="module", params=["text", "json"])
def told(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[tuple[str, tuple[int, str, str], tuple[int, str, str]]]:
    as_json = request.param == "json"
    worlds = []
    for kind in ("file", "url"):
        directory = tmp_path_factory.mktemp(kind)
        (directory / "a.txt").write_text("one\ntwo\n")
        (directory / "b.txt").write_text("three\n")
        (directory / "tree" / "below").mkdir(parents=True)
        (directory / "tree" / "below" / "c.json").write_text(json.dumps({"year": 1869}))
        worlds.append(World(str(directory / "x.svcdb"), directory))
    of_file, of_url = worlds
    options = ("--auth", "self", "--background", "true")
    with start_server(of_file.place, *options, plugins=None):
        pass  # Both databases are made by a server, so that both have the same plugins.
    lines = [line for line in STORY.splitlines() if line]
    with start_server(of_url.place, *options, plugins=None) as server:
        of_url.place = server.url
        key = re.findall(r"svc_k_\S+", server.output)[0]
        # Once: a key is exchanged for so many tokens a minute, and a command has no memory.
        body = json.dumps({"api_key": key, "refresh": False}).encode()
        headers = {"Content-Type": "application/json"}
        signed_in = server.request("POST", "/auth/token", body=body, headers=headers)
        of_url.token = signed_in.json()["token"]
        return [(line, of_file.tell(line, as_json), of_url.tell(line, as_json)) for line in lines]


def test_every_command_is_in_the_story() -> None:
    words = [line.split() for line in STORY.splitlines() if line and not line.startswith("@")]
    assert {command_of(each) for each in words} == set(COMMANDS) - ONE_PLACE


def test_each_line_is_the_same(told: list[tuple[str, tuple[int, str, str], tuple[int, str, str]]]) -> None:
    other = [f"svc {line}\n  file: {a}\n  url:  {b}" for line, a, b in told if a != b]
    assert not other, "\n".join(other)


def test_the_story_has_successes_and_refusals(
    told: list[tuple[str, tuple[int, str, str], tuple[int, str, str]]],
) -> None:
    codes = [of_file[0] for _, of_file, _ in told]
    assert codes.count(0) > len(codes) / 2
    assert {0, 2, 3, 4} <= set(codes)
