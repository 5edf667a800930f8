"""Request ids: the caller's own where it is fit to be written into a log, else one of ours."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import MutableMapping, Sequence
from typing import Any

HEADER = b"x-request-id"
_KEY = "query_intent.request_id"
_FIT = re.compile(rb"[A-Za-z0-9._:=+/@-]{1,128}")

# A random part a process and a count: unique without asking for randomness on every request.
_process = os.urandom(6).hex()
_count = itertools.count(1)


def make_request_id(headers: Sequence[tuple[bytes, bytes]]) -> str:
    """The id for a request with these headers: another one each time where the caller has sent none."""
    for name, value in headers:
        if name == HEADER and _FIT.fullmatch(value):
            return value.decode("ascii")
    return f"{_process}-{next(_count):x}"


def request_id_of(scope: MutableMapping[str, Any]) -> str:
    """The id of this ASGI request, the same however often it is asked for."""
    known = scope.get(_KEY)
    if known is None:
        known = scope[_KEY] = make_request_id(scope["headers"])
    return str(known)
