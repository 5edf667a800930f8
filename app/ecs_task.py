"""What ECS says of the task that this runs in, by the task metadata endpoint.

https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v4-response.html
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from urllib.request import urlopen

import orjson

METADATA_URI = "ECS_CONTAINER_METADATA_URI_V4"
TIMEOUT_S = 1.0  # it is on the machine itself


def seconds_since_pull(environ: Mapping[str, str]) -> float | None:
    """Since ECS began to pull the image for this task; None where the machine had it, or ECS doesn't say."""
    try:
        with urlopen(f"{environ[METADATA_URI]}/task", timeout=TIMEOUT_S) as reply:
            began = orjson.loads(reply.read())["PullStartedAt"]
        # RFC 3339 in UTC, to the nanosecond; whole seconds are enough.
        return time.time() - datetime.strptime(f"{began[:19]}Z", "%Y-%m-%dT%H:%M:%S%z").timestamp()
    except (OSError, ValueError, KeyError, TypeError):
        return None
