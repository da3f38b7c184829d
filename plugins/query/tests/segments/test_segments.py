"""Segments answer as a dictionary does: after flushes and merges, for many processes, whatever is removed."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from random import Random

import pytest
from pyroaring import BitMap
from svc_query.segments import TermIndexReader, TermIndexWriter, unused_files
from svc_query.segments.manifest import decode_manifest
from svc_query.segments.segment import READ_WHOLE


def some_terms(random: Random) -> list[bytes]:
    makers = (
        lambda: b"few%d" % random.randint(0, 20),
        lambda: b"many%08d" % random.randint(0, 10**6),
        lambda: random.randbytes(random.randint(0, 3)),
        lambda: b"x" * random.choice([5, 1_023, 1_024, 1_030]),
    )
    return [random.choice(makers)() for _ in range(random.randint(0, 3))]


@pytest.mark.parametrize("seed", range(6))
def test_an_index_answers_as_a_dictionary_does(index, seed):
    random = Random(seed)
    number = 0
    reader = None
    for _ in range(random.randint(2, 20)):
        for _ in range(random.choice([1, 30, 600])):
            number += random.randint(1, 3)
            index.add(number, some_terms(random))
            if random.random() < 0.2:
                index.dead.add(random.randint(0, number))
        index.writer.flush()
        index.merge()
        newer = index.reader(reader)
        if reader is not None:
            reader.close()
        reader = newer
    reader.verify()
    index.check(reader, random)
    assert reader.size == sum(path.stat().st_size for path in index.directory.iterdir())
    reader.close()


def test_a_large_index_is_mapped_and_answers_the_same(index):
    random = Random(7)
    for number in range(30_000):
        index.add(number, [b"price%04d" % random.randint(0, 300), b"title%07d" % random.randint(0, 10**6)])
        if number % 10_000 == 9_999:
            index.writer.flush()
    with_segments = index.reader()
    assert min(entry.size for entry in decode_manifest(index.manifest).segments) > READ_WHOLE
    index.check(with_segments, random, lookups=24)
    index.check_range(with_segments, b"price", b"q")
    index.dead.update(range(5_000, 16_000))
    index.merge()
    assert len(decode_manifest(index.manifest).segments) == 3
    after = index.reader(with_segments)
    index.check(with_segments, random, lookups=8)
    with_segments.close()
    index.check(after, random, lookups=24)
    after.close()


def test_documents_come_in_any_order_and_twice(index):
    for number in (5, 3, 3, 900, 1):
        index.add(number, [b"a", b"b%d" % number])
    index.writer.flush()
    for number in (4, 3, 2):
        index.add(number, [b"a"])
    index.writer.flush()
    for manifest_is_merged in (False, True):
        reader = index.reader()
        index.check(reader, Random(1))
        assert index.live(reader.documents()) == {5, 900} | ({1, 2, 3, 4} - set(index.dead))
        reader.close()
        if not manifest_is_merged:
            index.dead.update([1, 2, 3, 4])
            assert index.merge() >= 1


def test_an_empty_index_answers_nothing(index):
    assert index.writer.flush() == index.manifest
    index.writer.add(7, [])
    assert index.writer.pending == 1
    index.writer.flush()
    assert index.writer.pending == 0
    for manifest in (None, index.manifest):
        reader = TermIndexReader(index.directory, manifest, ordered=index.ordered)
        assert (reader.count(b"a"), reader.count_range(None, None), reader.size) == (0, 0, 0)
        assert not reader.postings(b"a")
        assert not reader.postings_range(b"a", None)
        assert not reader.postings_of_all([b"a"])
        assert list(reader.scan()) == list(reader.terms()) == []
        reader.close()
    assert index.writer.merge_plan(None, BitMap()) is None


def test_all_terms_narrow_to_documents_that_may_have_them(index):
    random = Random(3)
    for number in range(2_000):
        index.add(number, [b"t%d" % random.randint(0, 9) for _ in range(4)])
        if number % 700 == 0:
            index.writer.flush()
    index.writer.flush()
    reader = index.reader()
    for _ in range(30):
        terms = [b"t%d" % random.randint(0, 9) for _ in range(random.randint(1, 5))]
        expected = set.intersection(*(index.model[term] for term in terms))
        found = set(reader.postings_of_all(terms))
        assert expected <= found <= index.model[terms[0]] | set.union(*(index.model[term] for term in terms))
        assert len(found) <= len(expected) + 4 * reader.segments
    assert not reader.postings_of_all([b"t1", b"nowhere"])
    reader.close()


def test_eight_segments_become_one(index):
    for number in range(64):
        index.add(number, [b"term", b"n%d" % number])
        index.writer.flush()
        assert index.merge() <= 2
    assert 1 <= len(decode_manifest(index.manifest).segments) <= 8
    assert len(list(index.directory.iterdir())) == len(decode_manifest(index.manifest).segments)
    reader = index.reader()
    assert set(reader.postings(b"term")) == set(range(64))
    reader.close()


def test_segments_of_dead_documents_alone_disappear(index):
    for number in range(10):
        index.add(number, [b"term"])
    index.writer.flush()
    index.dead.update(range(10))
    assert index.merge() == 1
    assert decode_manifest(index.manifest).segments == ()
    assert list(index.directory.iterdir()) == []


def test_flushes_go_on_while_a_merge_runs(index):
    for number in range(8):
        index.add(number, [b"old"])
        index.writer.flush()
    plan = index.writer.merge_plan(index.manifest, BitMap())
    steps = plan.run()
    next(steps, None)
    index.add(100, [b"new"])
    index.writer.flush()
    with pytest.raises(ValueError, match="does not have"):
        for _ in steps:
            pass
        plan.apply(TermIndexWriter(index.directory, None, ordered=index.ordered).manifest)
    index.writer.manifest = plan.apply(index.manifest)
    reader = index.reader()
    index.check(reader, Random(1))
    assert len(decode_manifest(index.manifest).segments) == 2
    reader.close()


def test_a_merge_that_is_given_up_leaves_nothing(index):
    for number in range(40_000):
        index.add(number, [b"%d" % (number * 7_919 % 40_000)])
        if number % 5_000 == 4_999:
            index.writer.flush()
    plan = index.writer.merge_plan(index.manifest, BitMap())
    steps = plan.run()
    next(steps)
    assert len(unused_files(index.directory, index.manifest)) == 1
    steps.close()
    assert unused_files(index.directory, index.manifest) == []
    with pytest.raises(ValueError, match="not been run"):
        plan.apply(index.manifest)
    assert index.merge() == 1
    reader = index.reader()
    assert len(reader.documents()) == 40_000
    reader.close()


def test_a_flush_that_fails_can_be_repeated(index, monkeypatch):
    index.add(1, [b"a"])

    def full(_source, _target):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", full)
        with pytest.raises(OSError, match="No space"):
            index.writer.flush()
    assert list(index.directory.iterdir()) == []
    assert index.writer.pending == 1
    index.writer.flush()
    reader = index.reader()
    assert set(reader.postings(b"a")) == {1}
    reader.close()


def test_readers_go_on_while_files_are_replaced(index):
    random = Random(5)
    for number in range(20_000):
        index.add(number, [b"price%04d" % random.randint(0, 300), b"title%07d" % number])
        if number % 2_500 == 2_499:
            index.writer.flush()
    reader = index.reader()
    failures = []
    stop = threading.Event()

    def ask():
        mine = Random(threading.get_ident())
        for _ in range(10_000):
            if stop.is_set():
                return
            number = mine.randint(0, 19_999)
            if set(reader.postings(b"title%07d" % number)) != {number}:
                failures.append(number)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert index.merge() >= 1
    stop.set()
    for thread in threads:
        thread.join()
    assert not failures
    index.check(reader, random, lookups=8)
    reader.close()
    with pytest.raises(FileNotFoundError):
        reader.postings(b"title0000001")


def test_a_missing_segment_is_not_found(index):
    index.add(1, [b"a"])
    manifest = index.writer.flush()
    for path in index.directory.iterdir():
        path.unlink()
    with pytest.raises(FileNotFoundError):
        TermIndexReader(index.directory, manifest, ordered=index.ordered)
    index.dead.add(1)
    with pytest.raises(FileNotFoundError):
        index.writer.merge_plan(manifest, index.dead)


def test_merges_and_readers_leave_no_descriptors(index):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    random = Random(5)
    number = 0
    merges = 0
    reader = None
    for _ in range(200):
        for _ in range(8):
            for _ in range(20):
                number += 1
                index.add(number, [b"%d" % random.randint(0, 10**9), random.randbytes(600)])
            index.writer.flush()
        merges += index.merge()
        newer = index.reader(reader)
        if reader is not None:
            reader.close()
        reader = newer
        if merges >= 10:
            break
    assert merges >= 10
    assert any(entry.size > READ_WHOLE for entry in decode_manifest(index.manifest).segments)
    reader.close()
    reader.close()
    assert descriptors() == before


def test_shared_segments_are_closed_by_the_last_reader(index):
    for number in range(20_000):
        index.add(number, [b"%d" % number])
    index.writer.flush()
    first = index.reader()
    second = index.reader(first)
    first.close()
    assert set(second.postings(b"77")) == {77}
    second.close()
    with pytest.raises(FileNotFoundError):
        second.postings(b"78")


def test_another_process_reads_what_was_written(index):
    index.add(1, [b"a"])
    index.writer.flush()
    program = (
        "import sys; from pathlib import Path; from svc_query.segments import TermIndexReader\n"
        "directory, manifest = Path(sys.argv[1]), bytes.fromhex(sys.argv[2])\n"
        "reader = TermIndexReader(directory, manifest, ordered=sys.argv[3] == 'True')\n"
        "print(list(reader.postings(b'a')))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program, str(index.directory), index.manifest.hex(), str(index.ordered)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert answer.stdout.strip() == "[1]"


def test_a_killed_writer_leaves_files_that_nobody_names(index):
    index.add(1, [b"a"])
    index.writer.flush()
    program = (
        "import os, signal, sys; from pathlib import Path; from svc_query.segments import TermIndexWriter\n"
        "directory, manifest = Path(sys.argv[1]), bytes.fromhex(sys.argv[2])\n"
        "writer = TermIndexWriter(directory, manifest, ordered=sys.argv[3] == 'True')\n"
        "writer.add(2, [b'b'])\n"
        "if sys.argv[4] == 'half': os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "writer.flush()\n"
        "os.kill(os.getpid(), signal.SIGKILL)"
    )
    for left, moment in enumerate(("half", "whole"), 1):
        arguments = [str(index.directory), index.manifest.hex(), str(index.ordered), moment]
        subprocess.run([sys.executable, "-c", program, *arguments], check=False, timeout=60)
        assert len(unused_files(index.directory, index.manifest)) == left
    for path in unused_files(index.directory, index.manifest):
        path.unlink()
    reader = index.reader()
    index.check(reader, Random(1))
    reader.close()
