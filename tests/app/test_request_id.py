"""Request ids: the caller's own where it is fit to be written into a log, else one of ours."""

from __future__ import annotations

import re
from typing import Any

import pytest

from app.request_id import request_id_of


def scope(*values: bytes, name: bytes = b"x-request-id") -> dict[str, Any]:
    return {"headers": [(b"accept", b"*/*"), *((name, value) for value in values)]}


@pytest.mark.parametrize("value", [b"a", b"Root=1-67891233-abcdef", b"4bf92f35/7+x==", b"me@shop:1_2.3", b"x" * 128])
def test_the_caller_s_own_is_kept(value: bytes) -> None:
    assert request_id_of(scope(value)) == value.decode()


@pytest.mark.parametrize("value", [b"", b"a b", b'{"a"}', b"a\nb", b"a\x00", "é".encode(), b"x" * 129, b"a;rm"])
def test_one_that_could_forge_a_log_line_is_replaced(value: bytes) -> None:
    assert re.fullmatch(r"[0-9a-f]{12}-[0-9a-f]+", request_id_of(scope(value)))


def test_the_first_one_that_is_fit_is_taken() -> None:
    assert request_id_of(scope(b"not fit", b"first", b"second")) == "first"


def test_without_one_each_request_gets_its_own() -> None:
    ids = {request_id_of({"headers": []}) for _ in range(1000)}
    assert len(ids) == 1000


def test_it_is_the_same_however_often_it_is_asked_for() -> None:
    ours, theirs = {"headers": []}, scope(b"abc")
    assert request_id_of(ours) == request_id_of(ours)
    assert request_id_of(theirs) == request_id_of(theirs) == "abc"


def test_other_headers_do_not_count() -> None:
    assert request_id_of(scope(b"abc", name=b"x-request-identity")) != "abc"
