"""Random callers, for the model and for the product."""

from __future__ import annotations

import random

from authorization_model.rules import Caller, Grant, Path, by_grants, leads_on
from svc.plugins import Identity, Operation, ScopedRule

LETTERS = "crudlify"
NAMES = ("a", "b", "l", "m", "x.txt", "y.json")
PARTS = (*NAMES, *"aaabbb", "*", "**", "**", "*.txt", "?", "[a]", "a*")
USER = "7f0a2b1c-0000-4000-8000-000000000001"


def random_path(rng: random.Random, most: int = 4) -> Path:
    return tuple(rng.choice(NAMES) for _ in range(rng.randint(0, most)))


def random_glob(rng: random.Random) -> str:
    parts = [rng.choice(PARTS) for _ in range(rng.randint(0, 4))]
    return "/" + "/".join(parts + ["**"] * (rng.random() < 0.4))


def random_flags(rng: random.Random) -> str:
    chosen = rng.choice(("--------", "crudlify", "-r--l---", "crudl---", "random"))
    return (
        "".join(letter if rng.random() < 0.5 else "-" for letter in LETTERS) if chosen == "random" else chosen
    )


def random_grant(rng: random.Random) -> Grant:
    pattern = random_glob(rng)[1:] or None if rng.random() < 0.3 else None
    deny = random_flags(rng).replace("-", "") if rng.random() < 0.3 else ""
    allow = random_flags(rng).replace("-", "")
    return Grant(random_path(rng, 2), pattern, allow, deny)


def random_caller(rng: random.Random) -> Caller:
    rules = tuple((random_glob(rng), random_flags(rng)) for _ in range(rng.choice((0, 0, 1, 2, 3, 6))))
    kind = rng.choice(("root", "user", "user", "user", "share"))
    if kind == "root":
        return Caller(True, None, rules)
    if kind == "share":
        return Caller(False, None, rules or (("/a/**", "-r--l---"),))
    grants = [random_grant(rng) for _ in range(rng.randint(0, 5))]
    if rng.random() < 0.5:
        grants.append(Grant((), None, random_flags(rng).replace("-", ""), ""))
    return Caller(False, tuple(grants), rules)


class Granted:
    """Grants as the rights of an identity: what counts here is what the product makes of rights."""

    def __init__(self, grants: tuple[Grant, ...]) -> None:
        self._grants = grants

    def allows(self, operation: Operation, path: Path) -> bool:
        return by_grants(self._grants, operation.letter, path)

    def leads_on(self, path: Path) -> bool:
        return leads_on(self._grants, path)

    def allows_below(self, operation: Operation, path: Path) -> bool:
        near = [
            one for one in self._grants if one.path[: len(path)] == path or path[: len(one.path)] == one.path
        ]
        is_sure = not any(operation.letter in one.deny or one.pattern is not None for one in near)
        return is_sure and self.allows(operation, path)


class GrantedAtOnce(Granted):
    """The same, with an answer for all operations at once."""

    def mask(self, path: Path) -> int:
        return sum(operation.bit for operation in Operation if self.allows(operation, path))


def identity_of(caller: Caller) -> Identity:
    rules = tuple(ScopedRule(glob, flags) for glob, flags in caller.rules)
    key = "key" if rules else None
    if caller.is_root:
        return Identity("00000000-0000-0000-0000-000000000000", "root", is_root=True, key_id=key, rules=rules)
    if caller.grants is None:
        return Identity(None, "share", key_id="key", rules=rules)
    rights = (Granted if len(caller.grants) % 2 else GrantedAtOnce)(caller.grants)
    return Identity(USER, "user", key_id=key, rights=rights, rules=rules)
