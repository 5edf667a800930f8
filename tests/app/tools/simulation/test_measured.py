from __future__ import annotations

from pathlib import Path

import pytest

from app.bundle import Bundle
from app.errors import BundleError
from app.tools.simulation.measured import PAUSES_S, ROWS, measure
from tests.tiny_bundle import BUCKETS, MAX_TOKENS


def test_rows_of_each_bucket_that_a_query_fills_are_timed_after_each_pause(tiny_bundle: Path) -> None:
    found = measure(Bundle(tiny_bundle), "null", replicas=2)
    assert list(found.warm_s) == BUCKETS
    assert found.max_tokens == MAX_TOKENS
    assert tuple(found.observed_s) == PAUSES_S
    for observed_s in found.observed_s.values():
        assert list(observed_s) == [8, 16, 32]
        for seconds in observed_s.values():
            assert len(seconds) >= ROWS
            assert min(seconds) > 0


def test_a_target_that_the_bundle_has_not_is_refused(tiny_bundle: Path) -> None:
    with pytest.raises(BundleError, match="has no target 'cpu'"):
        measure(Bundle(tiny_bundle), "cpu", replicas=1)
