"""A URL and a body template become complete HTTP requests."""

from __future__ import annotations

import json

import pytest

from app.tools.load.target import Body, Target


@pytest.mark.parametrize("host", ["127.0.0.1:8080", "localhost:8080", "[::1]:8080"])
def test_a_url_is_taken_apart_and_resolved(host: str) -> None:
    target = Target.parse(f"http://{host}/v1/intent?a=b")
    assert target.address in ("127.0.0.1", "::1")
    assert (target.host_header, target.path, target.port) == (host, "/v1/intent?a=b", 8080)


def test_another_machine_is_as_good_a_target() -> None:
    target = Target.parse("http://192.0.2.1")
    assert (target.address, target.port, target.path) == ("192.0.2.1", 80, "/")


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "127.0.0.1:8080", "http://", "http://127.0.0.1/ä", "http://h/ x"]
)
def test_other_urls_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match=r"URL|percent"):
        Target.parse(url)


def test_a_request_is_complete_http() -> None:
    request = Target.parse("http://127.0.0.1:8080/v1/intent").encode(b'{"query":"lamp"}')
    head, _, body = request.partition(b"\r\n\r\n")
    assert body == b'{"query":"lamp"}'
    assert head.split(b"\r\n") == [
        b"POST /v1/intent HTTP/1.1",
        b"Host: 127.0.0.1:8080",
        b"Content-Type: application/json",
        b"Content-Length: 16",
    ]


@pytest.mark.parametrize("query", ["lamp", 'a "b" \\ c', "{query}", "äöü 🙂", "line\nbreak"])
def test_the_query_stands_wherever_the_template_has_its_place(query: str) -> None:
    filled = Body('{"inputs": ["{query}"], "text": "find: {query}!", "k": 3}').fill(query)
    assert json.loads(filled) == {"inputs": [query], "text": f"find: {query}!", "k": 3}


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ('{"query": {query}}', "not JSON"),
        ("", "not JSON"),
        ('{"query": "lamp"}', "no string in it has {query}"),
    ],
)
def test_a_template_that_is_not_json_or_has_no_place_is_refused(template: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Body(template)
