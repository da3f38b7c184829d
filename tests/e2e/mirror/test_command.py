"""``svc mirror`` as a person uses it, against a real server."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from svc_mirror.client.local_tree import LocalTree
from svc_mirror.client.server import Server as Asked
from svc_mirror.client.working import Options

from e2e.mirror.laptops import Laptop, tree_of, tree_there
from svc.errors import InsufficientStorage, ServiceUnavailable
from svc_blackbox.prepared import run_svc
from svc_blackbox.server import Server, free_port, svc_environment, svc_program
from svc_client import Client

WITHIN_S = 60.0


class Mirror:
    """A directory of the shared server, and the command on a directory of this machine."""

    def __init__(self, server: Server, directory: str, place: Path) -> None:
        self.url = f"{server.url}{directory}"
        self.directory = directory
        self.client = Client(server.url)
        self.place = place

    def put(self, path: str, content: bytes | str) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.client.files.put(f"{self.directory}/{path}", data)

    def delete(self, path: str) -> None:
        self.client.request("DELETE", f"/files{self.directory}/{path}", query={"recursive": "true"})

    def write(self, path: str, content: bytes | str) -> None:
        at = self.place / path
        at.parent.mkdir(parents=True, exist_ok=True)
        at.write_bytes(content.encode() if isinstance(content, str) else content)

    def run(self, *options: str, expect: int = 0) -> str:
        done = run_svc("mirror", self.url, str(self.place), *options, check=False)
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return (done.stdout + done.stderr).decode()

    def json(self, *options: str, expect: int = 0) -> Any:
        done = run_svc("mirror", self.url, str(self.place), "--json", *options, check=False)
        assert done.returncode == expect, (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout)

    @property
    def here(self) -> dict[str, str]:
        return tree_of(self.place)

    @property
    def there(self) -> dict[str, str]:
        return tree_there(self.client, self.directory)


@pytest.fixture
def mirror(shared_server: Server, area: str, tmp_path: Path) -> Iterator[Mirror]:
    made = Mirror(shared_server, area, tmp_path / "laptop")
    yield made
    made.client.close()


def test_both_ways_and_then_nothing(mirror: Mirror) -> None:
    mirror.put("there/file", "theirs")
    mirror.write("here/file", "mine")
    (mirror.place / "link").symlink_to("here/file")
    (mirror.place / "empty").mkdir()
    report = mirror.json()
    assert (report["fetched"], report["stored"]) == (1, 4)
    assert mirror.here == mirror.there
    assert os.readlink(mirror.place / "link") == "here/file"
    assert mirror.run() == "nothing to do\n"
    (mirror.place / "here" / "file").unlink()
    mirror.delete("there")
    report = mirror.json("--yes")
    assert (report["deleted_here"], report["deleted_there"]) == (1, 1)
    assert (
        mirror.here == mirror.there == {"link": "link:here/file", "empty": "directory", "here": "directory"}
    )


def test_a_conflict_keeps_both_and_says_so(mirror: Mirror) -> None:
    mirror.put("report.txt", "first")
    mirror.put("script", "first")
    mirror.run()
    (mirror.place / "script").chmod(0o755)
    mirror.put("script", "second")
    mirror.put("report.txt", "theirs")
    mirror.write("report.txt", "mine")
    said = mirror.run(expect=4)
    assert "conflict: report.txt has changed here and on the server" in said
    (copy,) = [path for path in mirror.here if "(conflict" in path]
    assert copy.endswith(".txt")
    alike = {"report.txt": "file:theirs", copy: "file:mine", "script": "file:second"}
    assert mirror.here == mirror.there == alike
    assert (mirror.place / "script").stat().st_mode & 0o777 == 0o755
    assert (mirror.place / ".svc-mirror").stat().st_mode & 0o777 == 0o700
    assert mirror.run() == "nothing to do\n"


def test_a_change_beats_a_deletion(mirror: Mirror) -> None:
    mirror.put("a", "first")
    mirror.put("b", "first")
    mirror.run()
    mirror.put("a", "changed there")
    (mirror.place / "a").unlink()
    mirror.write("b", "changed here")
    mirror.delete("b")
    mirror.run()
    assert mirror.here == mirror.there == {"a": "file:changed there", "b": "file:changed here"}


def test_a_mass_deletion_needs_a_yes(mirror: Mirror) -> None:
    for number in range(3):
        mirror.put(str(number), "content")
    mirror.run()
    for number in range(3):
        (mirror.place / str(number)).unlink()
    said = mirror.run(expect=4)
    assert said.startswith("svc: The directory is empty")
    assert len(mirror.there) == 3
    mirror.run("--yes")
    assert mirror.here == mirror.there == {}
    operations = [{"op": "put", "path": f"{mirror.directory}/d/{n}", "content": "x"} for n in range(30)]
    body = json.dumps({"operations": operations}).encode()
    mirror.client.request("POST", "/files/batch", headers={"Content-Type": "application/json"}, body=body)
    mirror.run()
    mirror.delete("d")
    assert "Of 30 files 30 were deleted on the server" in mirror.run(expect=4)
    assert len(mirror.here) == 31
    mirror.run("--yes")
    assert mirror.here == {}


def test_a_dry_run_changes_nothing(mirror: Mirror) -> None:
    mirror.put("there", "theirs")
    mirror.write("here", "mine")
    said = mirror.run("--dry-run")
    assert "would fetch: there" in said
    assert "would store: here" in said
    assert (list(mirror.here), list(mirror.there)) == (["here"], ["there"])


def test_down_only_sends_nothing(mirror: Mirror) -> None:
    mirror.put("a", "first")
    mirror.put("b", "first")
    mirror.run("--down-only")
    (mirror.place / "a").unlink()
    mirror.write("b", "mine")
    mirror.write("new", "mine")
    mirror.run("--down-only")
    assert mirror.there == {"a": "file:first", "b": "file:first"}
    assert mirror.here == {"a": "file:first", "b": "file:mine", "new": "file:mine"}
    for path in ("a", "b", "new"):
        (mirror.place / path).unlink()
    mirror.run("--down-only")
    assert mirror.here == mirror.there == {"a": "file:first", "b": "file:first"}


def test_two_at_once_and_another_server_are_refused(mirror: Mirror) -> None:
    mirror.write("here", "mine")
    tree = LocalTree(str(mirror.place))
    assert "Another svc mirror works on this directory" in mirror.run(expect=4)
    tree.close()
    mirror.run()
    mirror.url += "/below"
    assert "This directory mirrors another path" in mirror.run(expect=4)


def test_what_cannot_be_mirrored_is_named_and_left(mirror: Mirror) -> None:
    mirror.write("fine", "mine")
    os.mkfifo(mirror.place / "pipe")
    (mirror.place / "out").symlink_to("/etc/passwd")
    (mirror.place / "up").symlink_to("../..")
    with open(os.fsencode(mirror.place) + b"/latin\xe9", "wb"):
        pass
    mirror.put("pipe", "of the server")
    mirror.client.request(
        "PUT",
        f"/links{mirror.directory}/away",
        headers={"Content-Type": "application/json"},
        body=b'{"target": "/elsewhere"}',
    )
    left = {one["path"]: one["reason"] for one in mirror.json(expect=12)["left"]}
    assert left.pop("'latin\\udce9'").startswith("the database")
    assert left == {
        "pipe": "it is no file, directory or link",
        "out": "the link leads out of the directory",
        "up": "the link leads out of the directory",
        "away": "the link of the server leads out of the directory",
    }
    assert mirror.there["fine"] == "file:mine"
    assert mirror.there["pipe"] == "file:of the server"
    assert not (mirror.place / "away").is_symlink()


def test_names_in_another_unicode_form_stay_as_they_are(mirror: Mirror) -> None:
    decomposed, composed = "cafe\u0301", "caf\u00e9"
    mirror.write(f"{decomposed}/{decomposed}", "first")
    mirror.run()
    assert mirror.there == {composed: "directory", f"{composed}/{composed}": "file:first"}
    mirror.put(f"{composed}/{composed}", "second")
    mirror.put(f"{composed}/new", "third")
    mirror.run()
    expected = {decomposed: "directory", f"{decomposed}/{decomposed}": "file:second"}
    assert mirror.here == {**expected, f"{decomposed}/new": "file:third"}
    assert mirror.run() == "nothing to do\n"
    mirror.write(f"{decomposed}/{composed}", "twice")
    assert "the same in Unicode form C" in mirror.run(expect=12)


def test_of_a_large_file_only_what_is_new_is_fetched(mirror: Mirror, tmp_path: Path) -> None:
    content = os.urandom(6_000_000)
    mirror.put("large", content)
    mirror.run()
    mirror.put("large", content[:3_000_000] + b"inserted" + content[3_000_000:])
    report = mirror.json()
    assert report["bytes_fetched"] < 600_000
    assert (mirror.place / "large").read_bytes()[3_000_000:3_000_008] == b"inserted"
    mirror.put("moved", (mirror.place / "large").read_bytes())
    assert mirror.json()["bytes_fetched"] == 0


def test_a_first_copy_goes_on_where_it_was_interrupted(mirror: Mirror, monkeypatch: Any) -> None:
    content = os.urandom(24_000_000)
    mirror.put("large", content)
    laptop = Laptop(mirror.place, mirror.client.address.url, mirror.directory)
    laptop.place.mkdir()
    from svc_mirror.client.server import Server as Asked

    ask, answers = Asked.read_chunks, 0

    def breaks_off(self: Asked, hashes: Any) -> Any:
        nonlocal answers
        answers += 1
        if answers == 4:
            raise KeyboardInterrupt
        return ask(self, hashes)

    monkeypatch.setattr(Asked, "read_chunks", breaks_off)
    with pytest.raises(KeyboardInterrupt):
        laptop.run()
    assert not (mirror.place / "large").exists()
    fetched = laptop.run().bytes_fetched
    assert fetched < 14_000_000
    assert (mirror.place / "large").read_bytes() == content


def test_a_full_disk_ends_the_run_and_the_next_one_goes_on(mirror: Mirror, monkeypatch: Any) -> None:
    mirror.put("small", "content")
    mirror.put("large", os.urandom(2_000_000))
    laptop = Laptop(mirror.place, mirror.client.address.url, mirror.directory)
    laptop.place.mkdir()

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(InsufficientStorage):
            laptop.run()
    assert not laptop.tree
    laptop.run()
    assert set(laptop.tree) == {"small", "large"}


def test_a_file_that_changes_while_it_is_read_is_stored_whole(mirror: Mirror, monkeypatch: Any) -> None:
    mirror.write("log", b"1" * 2_000_000)
    laptop = Laptop(mirror.place, mirror.client.address.url, mirror.directory)
    read, reads = os.read, 0

    def appending(descriptor: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        if reads == 2:
            with open(mirror.place / "log", "ab") as log:
                log.write(b"2" * 10)
        return read(descriptor, size)

    monkeypatch.setattr(os, "read", appending)
    assert not laptop.run().left
    assert mirror.there == {"log": "file:" + "1" * 2_000_000 + "2" * 10}


def test_what_is_written_while_it_is_replaced_is_kept(mirror: Mirror, monkeypatch: Any) -> None:
    mirror.put("a", "first")
    mirror.put("b", "first")
    laptop = Laptop(mirror.place, mirror.client.address.url, mirror.directory)
    laptop.place.mkdir()
    laptop.run()
    mirror.put("a", "theirs")
    mirror.delete("b")
    link, rename = os.link, os.rename

    def late(step: Any, name: str) -> Any:
        def stepped(source: Any, *args: Any, **kwargs: Any) -> None:
            if source == name and mirror.here.get(name) == "file:first":
                mirror.write(name, f"mine {name}")
            step(source, *args, **kwargs)

        return stepped

    with monkeypatch.context() as patched:
        patched.setattr(os, "link", late(link, "a"))
        patched.setattr(os, "rename", late(rename, "b"))
        laptop.run(Options(may_delete_much=True))
    laptop.run(Options(may_delete_much=True))
    assert mirror.here == mirror.there
    assert mirror.here["a"] == "file:theirs"
    assert {"file:mine a", "file:mine b"} <= set(mirror.here.values())


def test_an_entry_that_leads_out_of_the_directory_is_not_written_through(
    mirror: Mirror, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    mirror.place.mkdir()
    (mirror.place / "d").symlink_to(outside)
    mirror.put("d/file", "theirs")
    mirror.json(expect=12)
    assert list(outside.iterdir()) == []
    assert mirror.there == {"d": "directory", "d/file": "file:theirs"}


def test_a_server_without_the_plugin_says_which_is_missing(new_server: Any, tmp_path: Path) -> None:
    server = new_server()
    mirror = Mirror(server, "/m", tmp_path / "laptop")
    run_svc("plugins", "disable", "mirror", "-D", server.url)
    assert "'svc plugins enable mirror'" in mirror.run(expect=3)


def test_a_collected_version_begins_anew(new_server: Any, tmp_path: Path) -> None:
    server = new_server()
    mirror = Mirror(server, "/m", tmp_path / "laptop")
    mirror.put("a", "first")
    mirror.put("b", "first")
    mirror.run()
    mirror.put("a", "second")
    mirror.delete("b")
    mirror.write("c", "mine")
    assert run_svc("gc", "-D", server.url).returncode == 0
    mirror.put("d", "third")
    mirror.run()
    assert mirror.here == mirror.there == {"a": "file:second", "c": "file:mine", "d": "file:third"}


def remove_database(path: Path) -> None:
    path.unlink()
    shutil.rmtree(f"{path}.d")


def test_of_a_server_with_another_database_nothing_is_deleted_or_replaced(
    new_server: Any, tmp_path: Path
) -> None:
    server = new_server("data", "--port", str(free_port()))
    mirror = Mirror(server, "/m", tmp_path / "laptop")
    for name in "abc":
        mirror.write(name, f"mine {name}")
    mirror.run()
    server.close()
    remove_database(server.database)
    server.start()
    mirror.run()
    ours = {name: f"file:mine {name}" for name in "abc"}
    assert mirror.here == mirror.there == ours
    server.close()
    remove_database(server.database)
    server.start()
    mirror.put("a", "old a")
    assert "conflict: a" in mirror.run(expect=4)
    assert mirror.here.items() >= {"a": "file:old a", "b": "file:mine b", "c": "file:mine c"}.items()
    assert "file:mine a" in mirror.here.values()
    assert mirror.here == mirror.there


def test_a_server_that_was_put_back_from_an_older_copy_gets_what_it_lacks(
    new_server: Any, tmp_path: Path
) -> None:
    server = new_server("data", "--port", str(free_port()))
    mirror = Mirror(server, "/m", tmp_path / "laptop")
    mirror.put("a", "first")
    mirror.run()
    server.close()
    copy = tmp_path / "copy.svcdb"
    shutil.copy(server.database, copy)
    server.start()
    mirror.put("a", "second")
    mirror.write("b", "mine")
    mirror.run()
    server.close()
    remove_database(server.database)
    shutil.copy(copy, server.database)
    server.start()
    state = sqlite3.connect(mirror.place / ".svc-mirror" / "state.sqlite")
    (token,) = state.execute("SELECT value FROM facts WHERE name = 'token'").fetchone()
    state.close()
    answer = server.client().post("/sync/diff", {"since": token})
    assert (answer.status, answer.json()["field"]) == (400, "since")
    assert "conflict: a" in mirror.run(expect=4)
    assert mirror.here.items() >= {"a": "file:first", "b": "file:mine"}.items()
    assert "file:second" in mirror.here.values()
    assert mirror.here == mirror.there


@pytest.mark.parametrize("also_there", [False, True])
def test_what_was_stored_and_not_told_of_outlasts_an_older_copy(
    new_server: Any, tmp_path: Path, monkeypatch: Any, also_there: bool
) -> None:
    server = new_server("data", "--port", str(free_port()))
    client = Client(server.url)
    client.files.put("/m/old", b"first")
    client.files.put("/m/name", b"moved")
    laptop = Laptop(tmp_path / "laptop", server.url, "/m")
    laptop.run()
    server.close()
    copy = tmp_path / "copy.svcdb"
    shutil.copy(server.database, copy)
    server.start()
    laptop.write("new/file", "only here")
    laptop.write("large", "large" * 200_000)
    laptop.write("old", "changed")
    (laptop.place / "link").symlink_to("old")
    (laptop.place / "name").rename(laptop.place / "other name")
    fetch_changes, asked = Asked.fetch_changes, []

    def breaks_off(*args: Any) -> None:
        asked.append(args)
        if len(asked) > 1:
            raise ServiceUnavailable("It is gone.")
        fetch_changes(*args)

    with monkeypatch.context() as patch, suppress(ServiceUnavailable):
        patch.setattr(Asked, "fetch_changes", breaks_off)
        laptop.run()
    assert client.files.read("/m/new/file") == b"only here"
    server.close()
    remove_database(server.database)
    shutil.copy(copy, server.database)
    server.start()
    if also_there:
        client.files.put("/m/old", b"theirs")
    mine = laptop.tree
    laptop.run()
    assert set(mine.values()) <= set(laptop.tree.values())
    assert laptop.tree["new/file"] == "file:only here"
    assert laptop.tree["old"] == ("file:theirs" if also_there else "file:changed")
    assert laptop.tree == tree_there(client, "/m")
    assert laptop.run().is_quiet
    client.close()


def test_what_another_deletes_after_it_was_stored_goes(mirror: Mirror) -> None:
    mirror.write("a", "mine")
    mirror.write("b", "mine")
    mirror.run()
    mirror.delete("a")
    mirror.run()
    assert mirror.here == mirror.there == {"b": "file:mine"}


def test_times_out_of_a_calendar_end_no_run(mirror: Mirror) -> None:
    mirror.write("here", "mine")
    os.utime(mirror.place / "here", (10_000_000_000, 10_000_000_000))
    mirror.client.files.put(f"{mirror.directory}/there", b"theirs", updated_at=253_402_300_799_999)
    mirror.run()
    mirror.write("here", "mine again")
    mirror.run()
    assert mirror.here == mirror.there == {"here": "file:mine again", "there": "file:theirs"}


def test_watching_follows_both_sides_and_outlasts_the_server(new_server: Any, tmp_path: Path) -> None:
    server = new_server("watched", "--port", str(free_port()))
    mirror = Mirror(server, "/m", tmp_path / "laptop")
    mirror.put("a", "first")
    words = [svc_program(), "mirror", mirror.url, str(mirror.place), "--watch", "--interval", "0.1"]
    with subprocess.Popen(words, env=svc_environment(), stderr=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: mirror.place.exists() and mirror.here == {"a": "file:first"})
            mirror.write("b", "mine")
            until(lambda: mirror.there == {"a": "file:first", "b": "file:mine"})
            mirror.put("a", "second")
            until(lambda: mirror.here.get("a") == "file:second")
            mirror.delete("b")
            until(lambda: "b" not in mirror.here)
            server.kill()
            mirror.write("offline", "mine")
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            assert any("Trying again." in line for line in lines)
            server.start()
            until(lambda: mirror.there.get("offline") == "file:mine")
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(WITHIN_S)
    assert process.returncode == 130


def until(holds: Any) -> None:
    end = time.monotonic() + WITHIN_S
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_file_with_another_name_is_moved_on_the_server(mirror: Mirror) -> None:
    large = os.urandom(1 << 20).hex()
    mirror.write("old/large", large)
    mirror.write("old/small", "small")
    mirror.write("kept", "kept")
    mirror.run()
    before = mirror.client.files.stat(f"{mirror.directory}/old/large")
    (mirror.place / "new").mkdir()
    (mirror.place / "old/large").rename(mirror.place / "new/other")
    (mirror.place / "old/small").rename(mirror.place / "small")
    mirror.write("old/same-size", "other")
    done = mirror.json()
    assert (done["moved_there"], done["stored"], done["deleted_there"]) == (2, 2, 0), done
    assert done["bytes_stored"] == 5
    after = mirror.client.files.stat(f"{mirror.directory}/new/other")
    assert (after.hash, after.created_at) == (before.hash, before.created_at)
    assert mirror.here == mirror.there
    assert mirror.json()["moved_there"] == 0
    # What the server has under the old name by now is not moved, nor lost.
    (mirror.place / "kept").rename(mirror.place / "renamed")
    mirror.put("kept", "theirs")
    done = mirror.json()
    assert done["moved_there"] == 0
    assert mirror.here == mirror.there
    assert (mirror.here["kept"], mirror.here["renamed"]) == ("file:theirs", "file:kept")


def test_a_move_that_is_refused_is_a_deletion_and_a_new_file(
    shared_server: Server, area: str, tmp_path: Path
) -> None:
    laptop = Laptop(tmp_path / "laptop", shared_server.url, area)
    client = Client(shared_server.url)
    laptop.write("a", "content")
    laptop.run()
    (laptop.place / "a").rename(laptop.place / "b")
    sent = []
    whole = Laptop.run

    def check() -> None:
        # Between the look at both sides and the move.
        if not sent:
            sent.append(1)
        elif len(sent) == 1:
            sent.append(2)
            client.files.put(f"{area}/b", b"theirs")

    whole(laptop, check=check)
    whole(laptop)
    assert laptop.tree == tree_there(client, area)
    assert sorted(laptop.tree.values()) == ["file:content", "file:theirs"]
    client.close()
