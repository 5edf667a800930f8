"""``neuron-monitor``, which AWS's tools bring: run beside the workers, and started anew when it ends or falls silent.

It prints a JSON record every five seconds; what one says is ``app.neuron_records``, what becomes of it is
``app.neuron_metrics``.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import shutil
from collections.abc import Callable, Iterator

from app.neuron_records import Record, read_record

logger = logging.getLogger(__name__)

COMMAND = "neuron-monitor"
TOOLS = "/opt/aws/neuron/bin"  # where AWS's packages put it, which is often not on PATH
# A record of an instance with many cores and models is long; asyncio's own limit of a line is 64 KiB.
LONGEST_RECORD_BYTES = 8 << 20
SILENT_S = 30.0  # six records late
BACKOFF_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
SHOWN_CHARS = 200


class NeuronMonitor:
    """Keeps it running where it is installed. ``on_record`` is told of each record, on the event loop.

    ``on_end`` is told whenever the process has ended, so that nobody takes its last record for the present.
    """

    def __init__(
        self,
        *,
        on_record: Callable[[Record], None],
        on_end: Callable[[], None],
        silent_s: float = SILENT_S,
        backoff_s: tuple[float, ...] = BACKOFF_S,
    ) -> None:
        self._on_record = on_record
        self._on_end = on_end
        self._silent_s = silent_s
        self._backoff_s = backoff_s
        self._records = 0  # of the process that runs
        self._last_words = ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        command = shutil.which(COMMAND) or shutil.which(COMMAND, path=TOOLS)
        if command is None:
            logger.warning("%s is neither on PATH nor in %s: no metrics of the NeuronCores", COMMAND, TOOLS)
            return
        self._task = asyncio.get_running_loop().create_task(self._run_task(command))

    async def stop(self) -> None:
        """End the process, too."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run_task(self, command: str) -> None:
        backoffs = self._backoffs()
        while True:
            self._records, self._last_words = 0, ""
            try:
                how = await self._run_once(command)
            except OSError as error:
                how = f"can't be started: {error.strerror}"
            self._on_end()
            if self._records:
                backoffs = self._backoffs()
            backoff_s = next(backoffs)
            extra = {"how": how, "last_words": self._last_words, "restart_s": backoff_s}
            logger.warning("%s ended", COMMAND, extra=extra)
            await asyncio.sleep(backoff_s)

    def _backoffs(self) -> Iterator[float]:
        return itertools.chain(self._backoff_s, itertools.repeat(self._backoff_s[-1]))

    async def _run_once(self, command: str) -> str:
        """Start it and read it to its end; returns how it ended."""
        process = await asyncio.create_subprocess_exec(
            command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,  # what it complains of is its last words
            limit=LONGEST_RECORD_BYTES,
            start_new_session=True,  # Ctrl-C at the terminal is for the supervisor, which ends this one in its turn
        )
        assert process.stdout is not None
        try:
            await self._read(process.stdout)
            return f"exit code {await process.wait()}"
        except asyncio.TimeoutError:
            return f"silent for {self._silent_s:g} s"
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def _read(self, output: asyncio.StreamReader) -> None:
        """Raises ``asyncio.TimeoutError`` when no record comes for too long."""
        loop = asyncio.get_running_loop()
        due = loop.time() + self._silent_s
        while True:
            try:
                line = await asyncio.wait_for(output.readline(), due - loop.time())
            except ValueError:  # longer than any record; the rest of it is no record either
                continue
            if not line:
                return
            if (record := read_record(line)) is None:
                self._last_words = line.decode("utf-8", "replace").strip()[:SHOWN_CHARS]
                continue
            self._records += 1
            due = loop.time() + self._silent_s
            self._on_record(record)
