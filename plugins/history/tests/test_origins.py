"""What was made on another node of a cluster is shown with its user there, its node and its time."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner

from svc.plugin import Database, Identity, Origin
from svc_history.commands import blame, log, show
from svc_history.commands import history as history_command

FAR = Origin(7, "anna", 1_790_000_000_000)
SHOWN = {"node_id": 7, "timestamp": 1_790_000_000_000}


def merge(database: Database, **files: Origin | None) -> None:
    with database.transaction(actor="sync", message="merge") as changes:
        for name, origin in files.items():
            with changes.merging(origin):
                changes.put((name,), b"one\n", content_type="text/plain")


def test_a_change_of_one_origin(http: Any) -> None:
    merge(http.database, a=FAR)
    [row] = http.get("/versions/log").json["commits"]
    assert (row["user"], row["origin"]) == ("anna", SHOWN)
    assert "nodes" not in row
    assert http.get("/versions/commits/HEAD").json["origin"] == SHOWN
    [row] = http.get("/versions/history/a?commits=true").json["history"]
    assert (row["user"], row["origin"]) == ("anna", SHOWN)
    [line] = http.get("/versions/blame/a").json["lines"]
    assert (line["user"], line["origin"]) == ("anna", SHOWN)
    [entry] = http.get("/versions/blame/").json["entries"]
    assert (entry["user"], entry["origin"]) == ("anna", SHOWN)


def test_a_merge_of_several_writes_is_one_commit_and_names_its_nodes(http: Any) -> None:
    later = Origin(7, "bert", 1_790_000_000_001)
    merge(http.database, a=FAR, b=later)
    row = http.get("/versions/log").json["commits"][0]
    assert (row["users"], row["message"]) == (["anna", "bert"], "merged from node 7")
    assert row["origin"] == {"node_id": 7, "timestamp": None}
    merge(http.database, a=None, b=later, c=Origin(8))
    row = http.get("/versions/log").json["commits"][0]
    assert (row["nodes"], row["users"]) == ([7, 8], ["sync", "bert"])
    assert row["message"] == "merge\nmerged from node 7\nmerged from node 8"
    assert "origin" not in row
    [a, b, c] = http.get("/versions/blame/").json["entries"]
    assert "origin" not in a
    assert (b["user"], b["origin"]["node_id"]) == ("bert", 7)
    assert (c["user"], c["origin"]) == (None, {"node_id": 8, "timestamp": None})


def test_what_is_half_hidden_names_no_node_of_the_rest(http: Any, make_user: Any) -> None:
    merge(http.database, a=FAR, b=Origin(8, "bert"))
    user: Identity = make_user({"/a": "-r--l---"})
    http.become(user)
    row = http.get("/versions/log").json["commits"][0]
    assert (row["user"], row["message"]) == (None, None)
    assert "nodes" not in row
    assert "origin" not in row


def test_the_commands_name_the_node_behind_the_user(http: Any, tmp_path: Any) -> None:
    merge(http.database, a=FAR)
    for command, words in (
        (log, ()),
        (show, ("HEAD",)),
        (history_command, ("/a", "--commits")),
        (blame, ("/a",)),
        (blame, ("/",)),
    ):
        done = CliRunner().invoke(command, [*words, "-D", str(http.database.path)])
        assert done.exit_code == 0, (command, done.output, done.exception)
        assert "anna@7" in done.output
