"""Accepting connections so that workers which share a listening socket come to have about as many each.

The kernel gives a connection to whoever asks first, so of a burst the worker that happens to be awake would take all,
and for as long as those clients keep their connections its cores would do the work of all the others.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

logger = logging.getLogger(__name__)

# Connections that a worker may have more than another one, and for how long it then leaves what comes to others. After
# each such pause it accepts one even so: the other may hang, and a client waits for somebody.
AHEAD = 4
LEAVE_S = 0.002
# After the process or the machine had no room for one more; asyncio's own servers pause as long.
NO_ROOM_S = 1.0

# Takes how many connections this worker has; returns the fewest that any worker has.
Compare = Callable[[int], int]


class Acceptor:
    """What ``loop.create_server`` would give, as far as uvicorn needs it.

    Accepts one connection in a turn of the loop from ``listening``, which isn't closed by it. ``make_protocol`` as for
    ``loop.create_server``; ``connections`` is how many there are already.
    """

    def __init__(
        self,
        listening: socket.socket,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        connections: Callable[[], int],
        compare: Compare,
    ) -> None:
        self._listening = listening
        self._make_protocol = make_protocol
        self._connections = connections
        self._compare = compare
        self._loop = asyncio.get_running_loop()
        self._connecting: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._listen()

    def close(self) -> None:
        """Accept no more."""
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._listening)
            if self._pause is not None:
                self._pause.cancel()

    @property
    def is_open(self) -> bool:
        return not self._is_closed

    async def wait_closed(self) -> None:
        """Until each one that was accepted has its protocol."""
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _listen(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listening, self._accept)

    def _rest(self, seconds: float) -> None:
        self._loop.remove_reader(self._listening)
        self._pause = self._loop.call_later(seconds, self._listen)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listening.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return  # another worker was faster, or the client has left
        except OSError as error:
            logger.error("can't accept a connection: %s; trying again in %g s", error.strerror, NO_ROOM_S)
            self._rest(NO_ROOM_S)
            return
        accepted.setblocking(False)
        task = self._loop.create_task(self._connect(accepted))
        self._connecting.add(task)
        task.add_done_callback(self._connecting.discard)
        own = self._connections() + 1  # those of the last few turns may not be among them yet
        if own > self._compare(own) + AHEAD:
            self._rest(LEAVE_S)

    async def _connect(self, accepted: socket.socket) -> None:
        await self._loop.connect_accepted_socket(self._make_protocol, accepted)
