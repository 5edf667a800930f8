"""Connections that are slow, silent, greedy or old-fashioned: each is ended or served, and nobody else notices."""

from __future__ import annotations

import contextlib
import itertools
import json
import time

import pytest

from benchmarks.bad_inputs import JSON
from benchmarks.raw_http import Closed, Connection, Reply, chunked, post, request
from tests.app.service.conftest import Start
from tests.app.service.running import RunningService, wait_until

GOOD = post("/v1/intent", {"query": "red shoes"})
NO_REQUEST = b"\x16\x03\x01\x02\x00"  # how TLS begins
LONG_HEADERS = request("GET", "/healthz", "X: " + "x" * 40_000)


def test_a_connection_serves_one_request_after_another(service: RunningService) -> None:
    with service.connect() as connection:
        assert [connection.request(GOOD).status for _ in range(20)] == [200] * 20


def test_an_answer_comes_in_one_piece(service: RunningService) -> None:
    """A head sent before its body wakes the client for half an answer, and costs a system call."""
    with service.connect() as connection:
        for _ in range(100):
            connection.send(GOOD)
            head, _, body = connection.socket.recv(65_536).partition(b"\r\n\r\n")
            assert f"content-length: {len(body)}".encode() in head


@pytest.mark.parametrize("path", ["/healthz", "/v1/model"])
def test_a_reply_to_head_has_no_body(service: RunningService, path: str) -> None:
    with service.connect() as connection:
        connection.send(request("HEAD", path) + GOOD)
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += connection.socket.recv(1)
        assert connection.reply().status == 200  # to what came after it


def test_pipelined_requests_are_answered_in_order(service: RunningService) -> None:
    queries = [f"shoes {number}" for number in range(30)]
    with service.connect() as connection:
        connection.send(b"".join(post("/v1/intent", {"query": query}) for query in queries))

        assert [connection.reply().json()["query"] for _ in queries] == queries


def test_pipelined_requests_may_be_of_every_kind_and_size(service: RunningService) -> None:
    sent = [
        (GOOD, 200),
        (post("/v1/intent", {"query": ""}), 422),
        (request("GET", "/healthz"), 200),
        (post("/v1/intents", {"queries": ["a" * 100_000]}), 200),
        (post("/v1/nothing", {}), 404),
        (GOOD, 200),
    ]
    with service.connect() as connection:
        connection.send(b"".join(data for data, _ in sent))

        assert [connection.reply().status for _ in sent] == [status for _, status in sent]


def test_a_thousand_may_wait_behind_one_that_takes_time(service: RunningService) -> None:
    """They are answered one after the other, not one inside the other, and while the client reads."""
    blank = post("/v1/intent", {"query": ""})
    with service.connect() as connection:
        connection.send(GOOD + blank * 3000 + request("GET", "/healthz"))

        assert [connection.reply().status for _ in range(3002)] == [200, *[422] * 3000, 200]


def test_answers_are_in_order_for_a_client_that_reads_late(service: RunningService) -> None:
    """Its buffers are full with what was answered at once when a request comes that takes time."""
    blank = {"query": ""}
    sent = [blank] * 4000 + [{"query": "red shoes"}, blank, {"query": "blue shoes"}, blank]
    with service.connect() as connection:
        connection.send(
            b"".join(post("/v1/intent", each, f"X-Request-Id: {number}") for number, each in enumerate(sent))
        )
        ids = [connection.reply().headers["x-request-id"] for _ in sent]

    assert ids == [str(number) for number in range(len(sent))]


def test_a_long_body_in_the_smallest_chunks_is_no_long_work(service: RunningService) -> None:
    """Put together anew with each of them it would keep every other query waiting for half a minute."""
    body = json.dumps({"queries": ["a" * 500_000]}).encode()
    started = time.perf_counter()
    with service.connect() as connection:
        connection.send(chunked("/v1/intents", *(body[place : place + 1] for place in range(len(body)))))
        assert connection.reply().status == 200
    assert time.perf_counter() - started < 5.0


def test_a_pipelined_request_may_come_in_pieces(service: RunningService) -> None:
    with service.connect() as connection:
        connection.send(GOOD + GOOD + GOOD[:-5])
        assert [connection.reply().status for _ in range(2)] == [200, 200]
        connection.send(GOOD[-5:])
        assert connection.reply().status == 200


def test_a_request_may_come_byte_by_byte(service: RunningService) -> None:
    with service.connect() as connection:
        for byte in GOOD:
            connection.send(bytes([byte]))

        assert connection.reply().status == 200


def test_an_old_client_is_answered_and_its_connection_closed(service: RunningService) -> None:
    with service.connect() as connection:
        reply = connection.request(GOOD.replace(b"HTTP/1.1", b"HTTP/1.0"))

        assert (reply.status, reply.headers["connection"]) == (200, "close")
        assert connection.is_closed_by_server()


def test_a_client_that_says_close_is_closed(service: RunningService) -> None:
    with service.connect() as connection:
        assert connection.request(post("/v1/intent", {"query": "red shoes"}, "Connection: close")).status == 200
        assert connection.is_closed_by_server()


def test_a_client_that_asks_first_is_told_to_continue(service: RunningService) -> None:
    body = b'{"query": "red shoes"}'
    with service.connect() as connection:
        connection.send(request("POST", "/v1/intent", JSON, "Expect: 100-continue", f"Content-Length: {len(body)}"))
        assert connection.reply().status == 100
        assert connection.request(body).status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [((JSON, "Content-Length: 70000"), 413), (("Content-Type: text/plain", "Content-Length: 22"), 415)],
)
def test_a_client_that_asks_first_is_refused_before_it_has_sent_anything(
    service: RunningService, headers: tuple[str, ...], status: int
) -> None:
    """Whether its body still comes can't be known, so the connection ends."""
    with service.connect() as connection:
        reply = connection.request(request("POST", "/v1/intent", *headers, "Expect: 100-continue"))

        assert (reply.status, reply.headers["connection"]) == (status, "close")
        assert connection.is_closed_by_server()


def test_a_refusal_reaches_a_client_that_is_still_sending(service: RunningService) -> None:
    """10 MB are not read to the end, and the client learns why."""
    with service.connect() as connection:
        connection.send(request("POST", "/v1/intent", JSON, "Content-Length: 10000000"))
        connection.send(b" " * 10_000_000)

        assert connection.reply().status == 413


def test_an_offer_of_http2_is_declined_by_an_answer(service: RunningService) -> None:
    """Java's client makes it with every request to a plain http URL."""
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB")
    with service.connect() as connection:
        for _ in range(3):
            assert connection.request(post("/v1/intent", {"query": "red shoes"}, *offer)).status == 200
    assert not service.records_of("Unsupported upgrade request.")


@pytest.mark.parametrize(
    "target",
    [b"http://shop.example/v1/intent", b"/v1/%69ntent", b"/v1/intent?shop=de", b"/v1/intent?", b"/v1/intent#x"],
)
def test_a_target_may_be_spelled_as_http_allows(service: RunningService, target: bytes) -> None:
    assert service.send(GOOD.replace(b"/v1/intent", target)).status == 200


@pytest.mark.parametrize("target", [b"shop.example:443", b"/caf\xe9"])
def test_a_target_that_is_no_path_is_no_request(service: RunningService, target: bytes) -> None:
    reply = service.send(GOOD.replace(b"/v1/intent", target))

    assert reply.status == 400


def test_a_silent_connection_is_closed_without_a_word(strict_service: RunningService) -> None:
    with strict_service.connect() as connection:
        assert connection.is_closed_by_server()


def test_an_idle_connection_is_closed_after_its_time(strict_service: RunningService) -> None:
    """F1."""
    with strict_service.connect() as connection:
        assert connection.request(GOOD).status == 200
        assert connection.is_closed_by_server()


def test_an_answer_may_take_longer_than_the_idle_time(start: Start) -> None:
    """Also where its request came with one that was answered at once."""
    service = start(null_ms=2500, keep_alive_s=1, timeout_ms=10_000, fallback="off").wait_ready()
    with service.connect() as connection:
        connection.send(post("/v1/intent", {"query": ""}) + GOOD)
        assert [connection.reply().status for _ in range(2)] == [422, 200]


def test_a_connection_in_use_outlives_the_idle_time(strict_service: RunningService) -> None:
    """F1."""
    with strict_service.connect() as connection:
        ends = time.monotonic() + 2.2  # the idle time is 1 s
        while time.monotonic() < ends:
            assert connection.request(GOOD).status == 200
            connection.has_news(0.1)


def test_half_a_body_after_a_whole_request_is_timed_out_too(strict_service: RunningService) -> None:
    with strict_service.connect() as connection:
        connection.send(GOOD + GOOD[:-5])

        assert [connection.reply().status for _ in range(2)] == [200, 408]
        assert connection.is_closed_by_server()


def test_half_a_header_after_a_whole_request_is_timed_out_too(strict_service: RunningService) -> None:
    with strict_service.connect() as connection:
        connection.send(GOOD + GOOD[:30])

        assert connection.reply().status == 200
        with contextlib.suppress(Closed):  # as idle, or as slow: whichever limit is met first
            assert connection.reply().status == 408
        assert connection.is_closed_by_server()


def test_a_body_too_large_to_hold_back_is_timed_out_too(
    service: RunningService, strict_service: RunningService
) -> None:
    """Bodies over 64 kB are read while they come, by the request itself."""
    head = request("POST", "/v1/intents", JSON, "Content-Length: 1000000")
    with strict_service.connect() as connection:
        connection.send(head + b" " * 100_000)

        assert connection.reply().status == 408


def test_headers_that_come_in_two_pieces_are_too_long_as_in_one(service: RunningService) -> None:
    with service.connect() as connection:
        connection.send(LONG_HEADERS[:-100])
        service.wait_until_read()
        connection.send(LONG_HEADERS[-100:])

        assert connection.reply().status == 413


def test_a_slow_second_request_does_not_cost_the_first_its_answer(slow_service: RunningService) -> None:
    """Half a request may wait behind one that is being answered: that is no fault of its client."""
    with slow_service.connect() as connection:
        connection.send(GOOD + GOOD[:-5])
        assert connection.reply().status == 200
        connection.send(GOOD[-5:])
        assert connection.reply().status == 200


@pytest.mark.parametrize(
    ("rest", "status"),
    [
        (NO_REQUEST, 400),
        (LONG_HEADERS, 413),
        (LONG_HEADERS[:-4], 413),
        (request("POST", "/v1/intent", JSON, "Transfer-Encoding: chunked", body=b"no size"), 400),
    ],
    ids=["no request", "long headers", "endless headers", "a broken body"],
)
def test_what_comes_before_a_fault_is_answered_before_it_is(
    slow_service: RunningService, rest: bytes, status: int
) -> None:
    with slow_service.connect() as connection:
        connection.send(GOOD + GOOD + rest)
        replies = [connection.reply()]
        connection.send(b"x" * 50_000)  # which makes the headers too long that have not ended
        replies += [connection.reply() for _ in range(2)]

        assert [reply.status for reply in replies] == [200, 200, status]
        assert len({reply.headers["x-request-id"] for reply in replies}) == 3
        assert connection.is_closed_by_server()


@pytest.mark.parametrize(("data", "status"), [(NO_REQUEST, 400), (LONG_HEADERS, 413)])
def test_a_refusal_without_a_route_is_counted_and_has_an_id(service: RunningService, data: bytes, status: int) -> None:
    before = service.total("requests_total", route="connection", status=str(status), source="none")

    reply = service.send(data)

    assert reply.status == status
    assert reply.json()["request_id"] == reply.headers["x-request-id"]
    assert wait_until(
        lambda: service.total("requests_total", route="connection", status=str(status), source="none") == before + 1
    )


def test_a_request_that_comes_too_slowly_is_refused_under_its_own_id(strict_service: RunningService) -> None:
    reply = strict_service.send(post("/v1/intent", {"query": "red shoes"}, "X-Request-Id: slow-1")[:-5])

    assert (reply.status, reply.headers["x-request-id"]) == (408, "slow-1")


def test_a_client_that_does_not_read_its_answers_is_cut_off(strict_service: RunningService) -> None:
    """Its unread answers would hold the connection, and the handler of the next one, for ever."""
    wait_until(lambda: answers(strict_service))
    large = post("/v1/intents", {"queries": ["a" * 500_000], "timeout_ms": 10_000})
    with strict_service.connect() as connection:
        send_until_cut_off(connection, large)  # the server stops listening while its answers back up
    wait_until(lambda: strict_service.total("inflight") == 0)
    assert answers(strict_service)
    assert "never retrieved" not in strict_service.text
    assert "Exception in ASGI" not in strict_service.text


def test_a_client_that_does_not_read_its_last_answer_is_cut_off_too(strict_service: RunningService) -> None:
    """The request is done by then and the connection idle; closing it would wait for the client."""
    wait_until(lambda: answers(strict_service))
    large = post("/v1/intents", {"queries": ["a" * 1_000_000], "timeout_ms": 10_000})
    with contextlib.ExitStack() as stack:
        for _ in range(4):
            connection = stack.enter_context(strict_service.connect())
            connection.send(large * 7)  # more than the kernel holds back
        wait_until(lambda: answers(strict_service))


def test_one_connection_too_many_is_refused_and_the_others_stay(strict_service: RunningService) -> None:
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(strict_service.connect()) for _ in range(4)]
        assert held[0].request(GOOD).status == 200

        def refusal() -> Reply | None:
            with strict_service.connect() as fifth, contextlib.suppress(Closed):
                return fifth.request(GOOD)
            return None

        refused = wait_until(refusal)
        assert (refused.status, refused.json()["type"]) == (503, "urn:query-intent:problem:not-ready")
        assert (refused.headers["connection"], refused.headers["retry-after"]) == ("close", "1")
        assert held[0].request(GOOD).status == 200
    wait_until(lambda: answers(strict_service))


def send_until_cut_off(connection: Connection, data: bytes) -> None:
    with contextlib.suppress(ConnectionError):
        while True:
            connection.socket.sendall(data)


def answers(service: RunningService) -> bool:
    with contextlib.suppress(Closed):
        return service.classify("red shoes").status == 200
    return False


def test_fifty_connections_at_once_are_all_served(service: RunningService) -> None:
    with contextlib.ExitStack() as stack:
        connections = [stack.enter_context(Connection(service.traffic)) for _ in range(50)]
        for connection, number in zip(connections, itertools.count()):
            connection.send(post("/v1/intent", {"query": f"shoes {number}", "timeout_ms": 10_000}))

        assert [connection.reply().json()["query"] for connection in connections] == [f"shoes {n}" for n in range(50)]
