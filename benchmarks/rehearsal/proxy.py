"""HAProxy before the instances, with the health checks of a target group: of readiness, on the operations port."""

from __future__ import annotations

import contextlib
import csv
import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from benchmarks.rehearsal.instance import Instance, free_port

CHECK_S, FALL, RISE = 0.5, 2, 2
# Until the balancer has noticed that an instance drains: it takes FALL checks, and one more for what comes between.
NOTICE_S = CHECK_S * (FALL + 2)
PATIENCE_S = 30.0
PLACES = "/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin"  # sbin is not on everybody's PATH

# As an Application Load Balancer does it: the fewest outstanding requests, connections to instances used for all
# clients, and what has failed is not tried again. Behind the second port a refused connection is, on the other
# instance.
CONFIGURATION = """
global
  stats socket {folder}/stats mode 600
defaults
  mode http
  balance leastconn
  http-reuse always
  option httpchk GET /readyz
  http-check expect status 200
  timeout connect 1s
  timeout client 60s
  timeout server 60s
  timeout http-keep-alive 60s
  default-server check inter {check_ms} fall {fall} rise {rise}
listen strict
  bind 127.0.0.1:{strict}
  retries 0
  {servers}
listen redispatching
  bind 127.0.0.1:{redispatching}
  retries 2
  option redispatch 1
  {servers}
"""


class Proxy:
    """``url`` tries nothing twice; ``redispatching`` turns to another instance where one refuses the connection."""

    def __init__(self, instances: Sequence[Instance], folder: Path) -> None:
        self._folder = folder
        ports = {"strict": free_port(), "redispatching": free_port()}
        self.url, self.redispatching = (f"http://127.0.0.1:{port}" for port in ports.values())
        servers = [f"server {each.name} 127.0.0.1:{each.port} check port {each.ops_port}" for each in instances]
        checks = {"check_ms": int(CHECK_S * 1e3), "fall": FALL, "rise": RISE}
        text = CONFIGURATION.format(folder=folder, servers="\n  ".join(servers), **checks, **ports)
        self._file = folder / "haproxy.cfg"
        self._file.write_text(text)

    def __enter__(self) -> Proxy:
        if (command := shutil.which("haproxy", path=PLACES)) is None:
            raise SystemExit("benchmarks.rehearsal needs HAProxy: apt-get install haproxy")
        # In the foreground, and one process: it is ours to end.
        self._process = subprocess.Popen([command, "-q", "-db", "-f", str(self._file)])
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)

    def wait_for(self, instance: Instance, status: str) -> None:
        """Until both backends see ``instance`` so: UP or DOWN."""
        deadline = time.monotonic() + PATIENCE_S
        while self._seen(instance) != {status}:
            if time.monotonic() > deadline:
                raise RuntimeError(f"the proxy does not see {instance.name} {status}, but {self._seen(instance)}")
            time.sleep(0.05)

    def _seen(self, instance: Instance) -> set[str]:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as stats:
            stats.connect(str(self._folder / "stats"))
            stats.sendall(b"show stat\n")
            lines = stats.makefile().read().removeprefix("# ").splitlines()
            return {row["status"] for row in csv.DictReader(lines) if row["svname"] == instance.name}
        return set()
