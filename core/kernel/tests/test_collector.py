"""Bulk work keeps the garbage collector out, and leaves it as it was."""

from __future__ import annotations

import gc

import pytest

from svc.collector import collector_paused


def test_the_collector_goes_on_when_the_last_of_several_blocks_ends():
    with collector_paused():
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_goes_on_after_an_error():
    with pytest.raises(ValueError, match="broken"), collector_paused():
        raise ValueError("broken")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off():
    gc.disable()
    try:
        with collector_paused():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
