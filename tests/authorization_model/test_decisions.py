"""``permits`` decides as the model does, for each operation, each path and each caller."""

from __future__ import annotations

import random

import pytest

from authorization_model.callers import identity_of, random_caller, random_path
from authorization_model.rules import may
from authorization_model.scale import SEED, scaled
from svc.pipeline import effective_permissions, permits
from svc.plugins import Operation

PATHS_OF_ONE = 25


@pytest.mark.timeout(0)
def test_random_decisions_are_those_of_the_model() -> None:
    """40,000 decisions of a short run; a million with ``SVC_TEST_AUTHORIZATION_SCALE=25``."""
    rng = random.Random(SEED)
    for _ in range(scaled(200)):
        caller = random_caller(rng)
        identity = identity_of(caller)
        for path in [random_path(rng) for _ in range(PATHS_OF_ONE)]:
            directory = rng.random() < 0.5
            flags = effective_permissions(identity, path, directory=directory)
            for operation, flag in zip(Operation, flags, strict=True):
                expected = may(caller, operation.letter, path, directory)
                found = permits(identity, operation, path, directory=directory)
                assert found is expected, (caller, operation, path, directory)
                assert (flag != "-") is expected, (caller, operation, path, directory)


def test_what_is_allowed_for_everything_below_is_allowed_for_each_path_there() -> None:
    rng = random.Random(SEED)
    for _ in range(scaled(300)):
        caller = random_caller(rng)
        identity = identity_of(caller)
        path = random_path(rng, 2)
        for operation in Operation:
            if permits(identity, operation, path, below=True):
                for _ in range(10):
                    below = path + random_path(rng, 3)
                    assert may(caller, operation.letter, below), (caller, operation, path, below)
