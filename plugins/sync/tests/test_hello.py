"""How meetings are judged: the whole table, and that the first line that applies decides."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from svc_sync.cluster import Cluster, Head, Member
from svc_sync.hello import DECISIONS, MAXIMUM_OFFSET_MS, PROTOCOL, Hello, Meeting, Verdict, judge

ME, YOU, THIRD = Member(1, 10), Member(2, 20), Member(3, 30)
BOTH = Cluster({1: ME, 2: YOU}, frozenset(), {1: {1: 5, 2: 5}, 2: {1: 5, 2: 5}})


def hello(member, known=None, cluster=BOTH, cluster_id="c", protocol=PROTOCOL):
    return Hello(protocol, cluster_id, member, known or {1: 5, 2: 5}, cluster)


def verdict(mine=None, theirs=None, offset_ms=0, log_holds=True):
    return judge(Meeting(mine or hello(ME), theirs or hello(YOU), offset_ms, lambda head: log_holds))


def knows(cluster, writer, row):
    return replace(cluster, rows={**cluster.rows, writer: row})


WITHOUT_YOU = Cluster({1: ME, 3: THIRD}, frozenset(), {1: {1: 7}, 3: {1: 6}})


@pytest.mark.parametrize(
    ("expected", "arguments"),
    [
        pytest.param(Verdict.ACCEPT, {}, id="two members"),
        pytest.param(Verdict.OTHER_PROTOCOL, {"theirs": hello(YOU, protocol=PROTOCOL + 1)}, id="protocol"),
        pytest.param(Verdict.OTHER_CLUSTER, {"theirs": hello(YOU, cluster_id="d")}, id="cluster"),
        pytest.param(Verdict.MY_OWN_WRITER, {"theirs": hello(Member(1, 20))}, id="a copied database"),
        pytest.param(Verdict.ACCEPT, {"offset_ms": -MAXIMUM_OFFSET_MS}, id="clocks within the bound"),
        pytest.param(Verdict.CLOCKS_APART, {"offset_ms": MAXIMUM_OFFSET_MS + 1}, id="clocks ahead"),
        pytest.param(Verdict.CLOCKS_APART, {"offset_ms": -MAXIMUM_OFFSET_MS - 1}, id="clocks behind"),
        pytest.param(
            Verdict.I_AM_STALE,
            {"theirs": hello(YOU, cluster=knows(BOTH, 1, {1: 6}))},
            id="they know me as later",
        ),
        pytest.param(
            Verdict.THEY_ARE_STALE,
            {"mine": hello(ME, cluster=knows(BOTH, 2, {2: 6}))},
            id="I know them as later",
        ),
        pytest.param(
            Verdict.I_AM_STALE, {"theirs": hello(YOU, cluster=BOTH.without([1]))}, id="I was removed"
        ),
        pytest.param(
            Verdict.THEY_ARE_STALE,
            {"mine": hello(ME, cluster=BOTH.without([2]))},
            id="they were removed",
        ),
        pytest.param(
            Verdict.ACCEPT,
            {"mine": hello(ME, cluster=WITHOUT_YOU), "theirs": hello(YOU, {1: 6})},
            id="new to me",
        ),
        pytest.param(
            Verdict.THEY_ARE_STALE,
            {"mine": hello(ME, cluster=WITHOUT_YOU), "theirs": hello(YOU, {1: 5})},
            id="new to me, and they lack what is forgotten here",
        ),
        pytest.param(
            Verdict.I_AM_STALE,
            {"mine": hello(YOU, {1: 5}), "theirs": hello(ME, cluster=WITHOUT_YOU)},
            id="new to them, and I lack what is forgotten there",
        ),
    ],
)
def test_a_meeting_is_judged(expected, arguments):
    assert verdict(**arguments) is expected


def test_a_log_that_lacks_a_commit_that_others_have_seen_was_put_back():
    seen = replace(BOTH, heads={1: Head(5, 12, b"identity")})
    assert verdict(theirs=hello(YOU, cluster=seen)) is Verdict.ACCEPT
    assert verdict(theirs=hello(YOU, cluster=seen), log_holds=False) is Verdict.I_AM_STALE
    assert verdict(log_holds=False) is Verdict.ACCEPT


def test_the_first_line_that_applies_decides():
    everything = hello(Member(1, 20), cluster_id="d", protocol=PROTOCOL + 1)
    assert verdict(theirs=everything, offset_ms=99_999) is Verdict.OTHER_PROTOCOL
    assert [line[1] for line in DECISIONS][:4] == [
        Verdict.OTHER_PROTOCOL,
        Verdict.OTHER_CLUSTER,
        Verdict.MY_OWN_WRITER,
        Verdict.CLOCKS_APART,
    ]
