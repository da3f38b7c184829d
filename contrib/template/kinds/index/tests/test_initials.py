"""The plugin, by the contracts of svc and of queries."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from svc_hello.descriptor import PLUGIN
from svc_hello.initials import HasInitial, InitialIndexType
from svc_query.api import Leaf
from svc_query.testing.terms import TermIndexTypeContract, any_values

from svc_testing import PluginContract


def begins(value):
    return Leaf(field="title", op="has_initial", value=value)


class TestPlugin(PluginContract):
    plugin_id = PLUGIN.id


class TestInitials(TermIndexTypeContract):
    plugin_id = PLUGIN.id
    operators = (HasInitial(),)
    bad_leaves = (begins(None), begins(7), begins(""), begins("ab"))

    @pytest.fixture
    def extension(self):
        return InitialIndexType()

    def values(self):
        return st.sampled_from(["Ann", "anna", "Bob", "é", ""]) | any_values()

    def leaves(self):
        return st.sampled_from([begins("a"), begins("B"), begins("x")])


def test_small_letters_and_capitals_are_alike():
    predicate = HasInitial().compile(begins("A"))
    assert [predicate.test(name) for name in ("ann", "Ann", "Bob", 7)] == [1.0, 1.0, None, None]
