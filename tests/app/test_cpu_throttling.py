"""How often the container was stopped for having used its CPU quota up."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cpu_throttling import CpuThrottling

V2 = "usage_usec 9000000\nuser_usec 8000000\nnr_periods 200\nnr_throttled 3\nthrottled_usec 250000\nnr_bursts 0\n"
V1 = "nr_periods 200\nnr_throttled 3\nthrottled_time 250000000\n"
FOUND = {"cpu_periods_total": 200, "cpu_throttled_periods_total": 3, "cpu_throttled_seconds_total": 0.25}


def samples(cgroup: Path) -> dict[str, float]:
    families = CpuThrottling(cgroup).collect()
    return {each.name.removeprefix("query_intent_"): each.value for family in families for each in family.samples}


def test_cgroup_v2_tells_it(tmp_path: Path) -> None:
    """F19."""
    (tmp_path / "cpu.stat").write_text(V2)
    assert samples(tmp_path) == pytest.approx(FOUND)


def test_so_does_v1(tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.stat").write_text(V1)
    assert samples(tmp_path) == pytest.approx(FOUND)


def test_v2_is_believed_before_v1(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text(V2)
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.stat").write_text("nr_periods 1\nnr_throttled 1\nthrottled_time 1\n")
    assert samples(tmp_path)["cpu_periods_total"] == 200


def test_it_is_read_anew_each_time(tmp_path: Path) -> None:
    (tmp_path / "cpu.stat").write_text(V2)
    throttling = CpuThrottling(tmp_path)
    list(throttling.collect())
    (tmp_path / "cpu.stat").write_text(V2.replace("nr_throttled 3", "nr_throttled 4"))

    assert [family.samples[0].value for family in throttling.collect()][1] == 4


@pytest.mark.parametrize(
    "content",
    [
        None,
        "",
        "usage_usec 9000000\n",
        "nr_periods 0\nnr_throttled 0\nthrottled_usec 0\n",
        "nonsense\n",
        "nr_periods x\n",
    ],
)
def test_without_a_quota_there_is_nothing_to_tell(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "cpu.stat").write_text(content)
    assert samples(tmp_path) == {}
