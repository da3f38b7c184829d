"""What a client that keeps a copy is told is what the model says that it may see, and nothing else."""

from __future__ import annotations

import random
from typing import Any

import msgspec
import pytest
from blake3 import blake3
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from authorization_model.callers import identity_of, random_caller, random_grant
from authorization_model.rules import Caller, may
from authorization_model.scale import scaled
from authorization_model.service import Service, serving, write
from authorization_model.trees import Node, State, View, changed, random_states, text_of
from svc.plugins import Identity
from svc_users.rights import GrantedRights, Rule, pattern_glob

ROUNDS = 4
MOST_PAGES = 400
KINDS = {"files": "f", "symlinks": "l", "directories": "d"}
LETTERS = "crudlify"


def identity_with_fingerprint(caller: Caller) -> Identity:
    """The caller as a user of the product: rights of real grants, which say where they hold."""
    identity = identity_of(caller)
    if caller.grants is None or caller.is_root:
        return identity
    rules = [
        Rule(
            grant.path,
            sum(1 << LETTERS.index(letter) for letter in grant.allow),
            sum(1 << LETTERS.index(letter) for letter in grant.deny),
            None if grant.pattern is None else pattern_glob(grant.pattern),
        )
        for grant in caller.grants
    ]
    rights = GrantedRights(rules, blake3(repr(caller.grants).encode()).digest())
    return msgspec.structs.replace(identity, rights=rights)


class Client:
    """Keeps what it was told, and checks that each word was for it."""

    def __init__(self, service: Service, rng: random.Random) -> None:
        self.service = service
        self.rng = rng
        self.token: str | None = None
        self.has: dict[str, Node] = {}
        self.named: set[str] = set()

    def become(self, caller: Caller) -> None:
        self.service.become(caller)
        self.service._mode.identity = identity_with_fingerprint(caller)

    def take_page(self, view: View) -> bool:
        """Asks for one page and takes it in; returns whether there is more."""
        question: dict[str, Any] = {"limit": self.rng.choice((1, 2, 3, 1000))}
        if self.token is not None:
            question["since"] = self.token
        answer = self.service("POST", "/sync/diff", question)
        assert answer.status_code == 200, answer.text
        page = answer.json
        if page["root_hash"] is not None:
            assert all(view.shows(at) for at in view.state), view.caller
        if page["is_first"]:
            self.named = set()
        for list_name, items in page["changes"].items():
            kind, what = list_name.rsplit("_", 1)
            for item in items:
                self._take(view.caller, KINDS[kind], what, item, is_whole=page["is_whole"])
        if page["is_whole"] and not page["has_more"]:
            self.has = {at: node for at, node in self.has.items() if at in self.named}
        self.token = page["since"]
        return bool(page["has_more"])

    def _take(self, caller: Caller, kind: str, what: str, item: dict[str, Any], *, is_whole: bool) -> None:
        path = item["path"]
        if what == "deleted":
            assert not is_whole
            assert set(item) == {"path"}
            assert self.has.pop(path).kind == kind, "told of what it did not have"
            return
        self.named.add(path)
        content = item.get("target", "") if kind == "l" else item.get("hash", "")
        if not is_whole:
            assert (path in self.has) is (what == "modified"), (path, what)
        self.has[path] = Node(kind, content)
        if kind == "f":
            is_readable = may(caller, "r", tuple(path[1:].split("/")))
            assert item["is_readable"] is is_readable
            assert item["chunk_hashes"] == ([item["hash"]] if is_readable else None)


def shown(view: View) -> dict[str, Node]:
    found = {}
    for at, node in view.state.items():
        if view.shows(at):
            content = blake3(node.content.encode()).hexdigest() if node.kind == "f" else node.content
            found[text_of(at)] = Node(node.kind, content)
    return found


def other_rights(rng: random.Random, caller: Caller) -> Caller:
    """The caller with one grant more or less, or with other rules; or somebody else."""
    if caller.grants is None or rng.random() < 0.3:
        return random_caller(rng)
    grants = list(caller.grants)
    if grants and rng.random() < 0.5:
        grants.pop(rng.randrange(len(grants)))
    else:
        grants.append(random_grant(rng))
    return caller._replace(grants=tuple(grants))


@pytest.mark.timeout(0)
@settings(max_examples=scaled(12), phases=(Phase.generate,), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_client_has_what_the_model_shows(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    rng = random.Random(seed)
    past, head, fork = random_states(rng)
    with serving(tmp_path_factory.mktemp("model") / "t.svcdb", past, head, fork) as service:
        state: State = dict(head)
        client, caller = Client(service, rng), random_caller(rng)
        for _ in range(ROUNDS):
            client.become(caller)
            for pages in range(MOST_PAGES):
                if not client.take_page(View(caller, state)):
                    break
                if pages < 2 and rng.random() < 0.2:
                    state = changed_state(rng, service, state)
                if pages < 2 and rng.random() < 0.1:
                    caller = other_rights(rng, caller)
                    client.become(caller)
            else:
                pytest.fail("the pages have no end")
            # What was written between two pages comes with the next token.
            for _ in range(MOST_PAGES):
                if not client.take_page(View(caller, state)):
                    break
            assert client.has == shown(View(caller, state)), (seed, caller)
            check_chunks(service, caller, past, head, state)
            check_foreign_tokens(client, service, caller, state)
            if rng.random() < 0.7:
                state = changed_state(rng, service, state)
            if rng.random() < 0.5:
                caller = other_rights(rng, caller)


def changed_state(rng: random.Random, service: Service, state: State) -> State:
    after = dict(state)
    changed(rng, after, rng.randint(0, 3), rng.randint(0, 2))
    write(service.database, state, after)
    return after


def check_chunks(service: Service, caller: Caller, *states: State) -> None:
    """A chunk is had of a file at HEAD that may be read; any other is as one that never was."""
    contents = sorted({node.content for state in states for node in state.values() if node.kind == "f"})
    hashes = {blake3(content.encode()).hexdigest(): content for content in contents}
    answer = service("POST", "/sync/chunks", {"hashes": [*hashes, "0" * 64]})
    readable = {node.content for at, node in states[-1].items() if node.kind == "f" and may(caller, "r", at)}
    given = {chunk["hash"] for chunk in answer.json["chunks"]}
    assert given == {hash for hash, content in hashes.items() if content in readable}, caller
    assert set(answer.json["missing"]) == {*hashes, "0" * 64} - given
    for at, node in states[-1].items():
        named = service("POST", "/sync/chunks", {"path": text_of(at)})
        if node.kind == "f" and may(caller, "r", at):
            assert named.json["chunk_hashes"] == [blake3(node.content.encode()).hexdigest()]
        else:
            assert named.status_code in (403, 404), (caller, at)


def check_foreign_tokens(client: Client, service: Service, caller: Caller, state: State) -> None:
    """A token of root tells others what they may see; one that was changed tells nothing."""
    theirs = service.as_root("POST", "/sync/diff", {"limit": 1}).json["since"]
    stranger = Client(service, client.rng)
    stranger.token = theirs
    for _ in range(MOST_PAGES):
        if not stranger.take_page(View(caller, state)):
            break
    if not (caller.is_root and not caller.rules):
        assert stranger.has == shown(View(caller, state)), caller
    forged = theirs[:40] + ("A" if theirs[40] != "A" else "B") + theirs[41:]
    assert service("POST", "/sync/diff", {"since": forged}).status_code == 400
