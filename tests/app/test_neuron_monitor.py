"""neuron-monitor is kept running: a real process, which prints what it should, nonsense, nothing, or ends."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from app.neuron_monitor import NeuronMonitor
from app.neuron_records import Record
from tests.app.neuron_samples import line, record, report
from tests.app.service.running import is_alive
from tests.neuron import NeuronHost, make_neuron_bundle
from tests.tiny_bundle import EMBEDDING_SIZE

PATIENCE_S = 20.0
RECORD = line(record(report({"0": 50.0}))).decode()
FOREVER = "import time; time.sleep(3600)"


class Watched:
    """What a monitor told, and each process's id, which the script writes first."""

    def __init__(self, folder: Path) -> None:
        self.records: list[Record] = []
        self.ends = 0
        self._pids = folder / "pids"
        self._changed = asyncio.Event()

    @property
    def pids(self) -> list[int]:
        return [int(pid) for pid in self._pids.read_text().split()] if self._pids.exists() else []

    def on_record(self, found: Record) -> None:
        self.records.append(found)
        self._changed.set()

    def on_end(self) -> None:
        self.ends += 1
        self._changed.set()

    async def wait(self, is_so: Callable[[], bool]) -> None:
        async def changed() -> None:
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

        await asyncio.wait_for(changed(), PATIENCE_S)


@asynccontextmanager
async def watching(folder: Path, *, silent_s: float = PATIENCE_S) -> AsyncIterator[Watched]:
    """Runs the neuron-monitor on PATH, restarted at once when it ends."""
    watched = Watched(folder)
    monitor = NeuronMonitor(
        on_record=watched.on_record, on_end=watched.on_end, silent_s=silent_s, backoff_s=(0.0, 0.01)
    )
    monitor.start()
    try:
        yield watched
    finally:
        await monitor.stop()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Put a neuron-monitor on PATH that runs this Python code."""

    def install_script(code: str) -> None:
        script = tmp_path / "neuron-monitor"
        pids = f"import os; open({str(tmp_path / 'pids')!r}, 'a').write(f'{{os.getpid()}} ')"
        script.write_text(f"#!{sys.executable}\n{pids}\n{code}\n")
        script.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path))

    return install_script


def test_records_are_told_as_they_come_and_the_process_ends_with_the_service(
    install: Callable[[str], None], tmp_path: Path
) -> None:
    install(f"print({RECORD!r} * 3, end='', flush=True)\n{FOREVER}")

    async def scenario() -> list[int]:
        async with watching(tmp_path) as watched:
            await watched.wait(lambda: len(watched.records) == 3)
            assert watched.records[0].utilization == {"0": 0.5}
            assert watched.ends == 0
            return watched.pids

    (pid,) = asyncio.run(scenario())
    assert not is_alive(pid)


def test_nonsense_between_records_is_passed_over(install: Callable[[str], None], tmp_path: Path) -> None:
    nonsense = ["level=warning msg=hm", "{", "null", "\udcff", '{"neuron_runtime_data": null, "system_data": null}', ""]
    shown = "\n".join(nonsense).encode("utf-8", "surrogateescape")
    install(
        f"import sys\nsys.stdout.buffer.write({shown!r} + b'\\n')\nprint({RECORD!r}, end='', flush=True)\n{FOREVER}"
    )

    async def scenario() -> None:
        async with watching(tmp_path) as watched:
            await watched.wait(lambda: len(watched.records) == 2)
            assert [each.utilization for each in watched.records] == [{}, {"0": 0.5}]

    asyncio.run(scenario())


def test_a_line_without_an_end_is_passed_over(
    install: Callable[[str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.neuron_monitor.LONGEST_RECORD_BYTES", 1 << 16)
    install(f"print('x' * 1_000_000)\nprint({RECORD!r}, end='', flush=True)\n{FOREVER}")

    async def scenario() -> None:
        async with watching(tmp_path) as watched:
            await watched.wait(lambda: len(watched.records) == 1)

    asyncio.run(scenario())


def test_one_that_ends_is_started_anew_and_its_last_record_is_no_longer_the_present(
    install: Callable[[str], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install(f"print({RECORD!r}, end='', flush=True)\nraise SystemExit('no more memory')")

    async def scenario() -> None:
        async with watching(tmp_path) as watched:
            await watched.wait(lambda: watched.ends == 3)
            assert len(watched.records) == 3

    asyncio.run(scenario())
    first = caplog.records[0]
    assert (first.message, first.how, first.last_words) == ("neuron-monitor ended", "exit code 1", "no more memory")


def test_the_longer_it_says_nothing_the_later_it_is_started_again(
    install: Callable[[str], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    install("raise SystemExit(127)")

    async def scenario() -> None:
        async with watching(tmp_path) as watched:
            await watched.wait(lambda: watched.ends == 4)

    asyncio.run(scenario())
    assert [each.restart_s for each in caplog.records[:4]] == [0.0, 0.01, 0.01, 0.01]


def test_one_that_falls_silent_is_killed_and_started_anew(
    install: Callable[[str], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """What is no record counts as silence, else one that only complains would never be replaced."""
    install("import time\nwhile True:\n print('still looking', flush=True)\n time.sleep(0.01)")

    async def scenario() -> list[int]:
        async with watching(tmp_path, silent_s=0.5) as watched:
            await watched.wait(lambda: watched.ends == 2)
            return watched.pids[:2]

    assert not any(is_alive(pid) for pid in asyncio.run(scenario()))
    assert (caplog.records[0].how, caplog.records[0].last_words) == ("silent for 0.5 s", "still looking")


def test_one_that_can_not_be_started_says_why(install: Callable[[str], None], tmp_path: Path, caplog) -> None:
    install("")
    script = tmp_path / "neuron-monitor"
    script.write_text("#!/nowhere/python\n")

    async def scenario() -> None:
        async with watching(tmp_path) as watched:
            await watched.wait(lambda: watched.ends == 1)

    asyncio.run(scenario())
    assert caplog.records[0].how == "can't be started: No such file or directory"


def test_where_it_is_not_installed_the_log_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    async def scenario() -> None:
        async with watching(tmp_path) as watched:
            assert (watched.pids, watched.ends) == ([], 0)

    asyncio.run(scenario())
    assert [each.message for each in caplog.records] == [
        "neuron-monitor is neither on PATH nor in /opt/aws/neuron/bin: no metrics of the NeuronCores"
    ]


_RUN = """
import sys, torch, torch_neuron
model = torch.jit.load(sys.argv[1])
rows = torch.zeros(1, 16, int(sys.argv[2])), torch.zeros(1, 1, 16, 16), torch.zeros(5, 16)
while True:
    model(*rows)
    print("ran", flush=True)
"""


def test_a_process_at_work_is_seen_on_the_core_that_it_has(
    neuron_host: Callable[..., NeuronHost], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over the stand-in for AWS's tools, which prints what a process really did."""
    host = neuron_host("inf1.xlarge")
    bundle = make_neuron_bundle(tmp_path / "bundle", buckets=(16,))
    for name in ("PATH", *(name for name in host.env if name.startswith("STANDIN_NEURON_"))):
        monkeypatch.setenv(name, host.env[name])

    async def scenario() -> Record:
        async with watching(tmp_path) as watched:
            await watched.wait(lambda: any(each.utilization for each in watched.records))
            return watched.records[-1]

    command = [sys.executable, "-c", _RUN, str(bundle / "inf1" / "row_16.pt"), str(EMBEDDING_SIZE)]
    env = host.env | {"NEURON_RT_VISIBLE_CORES": "2"}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ran\n"
        drain = threading.Thread(target=process.stdout.read)
        drain.start()
        try:
            found = asyncio.run(scenario())
        finally:
            process.kill()
            drain.join()

    assert (found.devices, list(found.utilization)) == (1, ["2"])
    assert found.core_memory["2", "model_code"] > 0
    assert found.memory["neuron_device"] > 0
    assert found.errors["hardware"] == 0
    assert found.ecc_events["0", "sram_ecc_uncorrected"] == 0
