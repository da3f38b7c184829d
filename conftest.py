"""Hypothesis profiles, shared by the tests of every distribution.

``ci`` (the default) repeats exactly; ``dev`` looks further, with fresh randomness each time.
Select with the environment variable ``HYPOTHESIS_PROFILE``.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=60,
    database=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.register_profile(
    "dev",
    settings.get_profile("ci"),
    derandomize=False,
    max_examples=400,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
