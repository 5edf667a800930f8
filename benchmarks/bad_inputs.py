"""What a running service makes of bad and odd input, as a table: python -m benchmarks.bad_inputs [URL]

Sends every case to the service at URL (default http://127.0.0.1:8080), which must run with the default limits, and
prints what came back in Markdown. Exit code 1 when a status isn't the documented one. The two slow cases take
READ_TIMEOUT_S (10 s) each. The tests of the service run the same list.
"""

from __future__ import annotations

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from benchmarks.raw_http import Closed, Connection, Reply, chunked, post, request

ONE, LIST = "/v1/intent", "/v1/intents"
JSON = "Content-Type: application/json"
MAX_BODY_BYTES, MAX_LIST_BODY_BYTES = 65_536, 1_048_576
MAX_QUERIES, MAX_TOP_K, MAX_TIMEOUT_MS = 128, 100, 10_000
MEGABYTE = 1_000_000

COMBINING = "e" + "\u0301" * 400
RIGHT_TO_LEFT = "‏أين طلبي‎ \u202e123\u202c"
FAMILY = "👩‍👩‍👧‍👦🏳️‍🌈 shirt"


class Case(NamedTuple):
    """``request`` is sent, then ``trickle`` again and again until there is a reply.

    ``problem`` is the last part of the problem's type, None for what is answered 200; ``field`` the field to blame.
    """

    name: str
    request: bytes
    status: int = 200
    problem: str | None = None
    field: str | None = None
    trickle: bytes = b""


def one(name: str, document: Any, *rest: Any) -> Case:
    return Case(name, post(ONE, document), *rest)


def many(name: str, document: Any, *rest: Any) -> Case:
    return Case(name, post(LIST, document), *rest)


def field(name: str, **fields: Any) -> Case:
    """A single query with a field that is out of its limits."""
    (blamed,) = fields
    return one(name, {"query": "red shoes"} | fields, 422, "invalid-field", blamed)


QUERIES = [
    one("empty query", {"query": ""}, 422, "invalid-field", "query"),
    one("blank query", {"query": " \t\n\u3000"}, 422, "invalid-field", "query"),
    one("query of zero-width characters only", {"query": "\u200b\u200d\ufeff"}, 422, "invalid-field", "query"),
    one("query of NUL only", {"query": "\0"}, 422, "invalid-field", "query"),
    one("60 kB of spaces", {"query": " " * 60_000}, 422, "invalid-field", "query"),
    one("query missing", {}, 422, "invalid-field", "query"),
    one("query null", {"query": None}, 422, "invalid-field", "query"),
    one("query a number", {"query": 5}, 422, "invalid-field", "query"),
    one("query true", {"query": True}, 422, "invalid-field", "query"),
    one("query a list", {"query": ["red shoes"]}, 422, "invalid-field", "query"),
    one("query an object", {"query": {"text": "red shoes"}}, 422, "invalid-field", "query"),
]

FIELDS = [
    field("top_k 0", top_k=0),
    field("top_k over its limit", top_k=MAX_TOP_K + 1),
    field("top_k negative", top_k=-1),
    field("top_k of 4,300 digits", top_k=10**4299),
    field("top_k a fraction", top_k=1.5),
    field("top_k text", top_k="5"),
    field("top_k true", top_k=True),
    field("timeout_ms 0", timeout_ms=0),
    field("timeout_ms over its limit", timeout_ms=MAX_TIMEOUT_MS + 1),
    field("timeout_ms text", timeout_ms="soon"),
    field("abstain text", abstain="yes"),
    field("abstain null", abstain=None),
]

LISTS = [
    many("list missing", {}, 422, "invalid-field", "queries"),
    many("list null", {"queries": None}, 422, "invalid-field", "queries"),
    many("list empty", {"queries": []}, 422, "invalid-field", "queries"),
    many("list of one query too many", {"queries": ["a"] * (MAX_QUERIES + 1)}, 422, "invalid-field", "queries"),
    many("text instead of a list", {"queries": "red shoes"}, 422, "invalid-field", "queries"),
    many("list of an empty query", {"queries": [""]}, 422, "invalid-field", "queries[0]"),
    many("list with a blank query", {"queries": ["red shoes", "a", "  "]}, 422, "invalid-field", "queries[2]"),
    many("list with null", {"queries": ["red shoes", None]}, 422, "invalid-field", "queries[1]"),
    many("list with a number", {"queries": ["red shoes", 5, "a"]}, 422, "invalid-field", "queries[1]"),
    many("list, top_k 0", {"queries": ["red shoes"], "top_k": 0}, 422, "invalid-field", "top_k"),
]

JSONS = [
    one("no body", b"", 400, "malformed-body"),
    one("JSON cut off", b'{"query": "red sh', 400, "malformed-body"),
    one("JSON with something after it", b'{"query": "red shoes"} {}', 400, "malformed-body"),
    one("JSON with single quotes", b"{'query': 'red shoes'}", 400, "malformed-body"),
    one("a JSON list", ["red shoes"], 400, "malformed-body"),
    one("a JSON string", "red shoes", 400, "malformed-body"),
    one("a JSON null", None, 400, "malformed-body"),
    one("NaN as the query", b'{"query": NaN}', 400, "malformed-body"),
    one("NaN in an unknown field", b'{"query": "red shoes", "weight": NaN}', 400, "malformed-body"),
    one("Infinity in an unknown field", b'{"query": "red shoes", "weight": -Infinity}', 400, "malformed-body"),
    one("a number of 5,000 digits", b'{"query": "red shoes", "top_k": ' + b"9" * 5000 + b"}", 400, "malformed-body"),
    one("30,000 brackets", b"[" * 30_000, 400, "malformed-body"),
    one("a query 10,000 lists deep", b'{"query": ' + b"[" * 10_000 + b"]" * 10_000 + b"}", 400, "malformed-body"),
    one("invalid UTF-8", b'{"query": "caf\xe9"}', 400, "malformed-body"),
    one("a surrogate in UTF-8", b'{"query": "a\xed\xa0\x80"}', 400, "malformed-body"),
    one("UTF-16", '{"query": "red shoes"}'.encode("utf-16"), 400, "malformed-body"),
    many("list, JSON cut off", b'{"queries": ["red shoes"', 400, "malformed-body"),
]

TRANSPORT = [
    Case("content type text/plain", request("POST", ONE, "Content-Type: text/plain", "Content-Length: 2", body=b"{}"),
         415, "media-type"),
    Case("content type of a form",
         request("POST", ONE, "Content-Type: application/x-www-form-urlencoded", "Content-Length: 7", body=b"query=a"),
         415, "media-type"),
    Case("GET instead of POST", request("GET", ONE), 405, "method-not-allowed"),
    Case("DELETE on the list route", request("DELETE", LIST), 405, "method-not-allowed"),
    Case("POST on a route to be read", post("/v1/model", {}), 405, "method-not-allowed"),
    Case("unknown route", post("/v1/nothing", {"query": "red shoes"}), 404, "not-found"),
    Case("unknown route with a broken escape", request("GET", "/%ff%00/../x"), 404, "not-found"),
    Case("body announced over the limit, none sent", request("POST", ONE, JSON, f"Content-Length: {MEGABYTE}"),
         413, "too-large"),
    one("1 MB query by the single route", {"query": "a" * MEGABYTE}, 413, "too-large"),
    Case("chunks over the limit without an end", chunked(ONE, *[b" " * 8192] * 9, is_complete=False),
         413, "too-large"),
    Case("list announced over the limit", request("POST", LIST, JSON, f"Content-Length: {MAX_LIST_BODY_BYTES + 1}"),
         413, "too-large"),
    many("list of 1 M Chinese characters", b'{"queries": ["' + "鞋".encode() * MEGABYTE + b'"]}',
         413, "too-large"),
    Case("one header of 40 kB", request("GET", "/healthz", "X-Long: " + "a" * 40_000), 413, "too-large"),
    Case("400 headers of 100 bytes", request("GET", "/healthz", *[f"X-{n:03}: {'a' * 93}" for n in range(400)]),
         413, "too-large"),
    Case("a path of 40 kB", request("GET", "/" + "a" * 40_000), 413, "too-large"),
    Case("no HTTP", b"hello\r\n\r\n", 400, "malformed-request"),
    Case("length that is no number", request("POST", ONE, JSON, "Content-Length: two", body=b"{}"),
         400, "malformed-request"),
    Case("negative length", request("POST", ONE, JSON, "Content-Length: -2", body=b"{}"), 400, "malformed-request"),
    Case("length and chunks at once", request("POST", ONE, JSON, "Content-Length: 2", "Transfer-Encoding: chunked",
                                              body=b"0\r\n\r\n"), 400, "malformed-request"),
    Case("chunk of no size", request("POST", ONE, JSON, "Transfer-Encoding: chunked", body=b"x\r\n"),
         400, "malformed-request"),
]  # fmt: skip

SLOW = [
    Case("body byte by byte", request("POST", ONE, JSON, "Content-Length: 500"), 408, "body-too-slow", trickle=b" "),
    Case("headers without an end", b"POST /v1/intent HTTP/1.1\r\n", 408, "body-too-slow", trickle=b"X-More: yes\r\n"),
]

# Strange, and answered all the same.
ODD = [
    one("unknown field", {"query": "red shoes", "locale": "en", "nested": {"deep": [1, 2, {}]}}),
    one("top_k 1", {"query": "red shoes", "top_k": 1}),
    one("top_k at its limit", {"query": "red shoes", "top_k": MAX_TOP_K}),
    one("fields null", {"query": "red shoes", "top_k": None, "timeout_ms": None}),
    many("list of the most queries", {"queries": ["a"] * MAX_QUERIES, "timeout_ms": MAX_TIMEOUT_MS}),
    one("60 kB of a", {"query": "a" * 60_000}),
    many("1 MB of a", {"queries": ["a" * MEGABYTE]}),
    many("1 MB of dots", {"queries": ["." * MEGABYTE]}),
    many('1 MB of "a "', {"queries": ["a " * (MEGABYTE // 2)]}),
    many("1 MB of combining marks", b'{"queries": ["e' + "\u0301".encode() * (MEGABYTE // 2) + b'"]}'),
    many("1 MB of Chinese", b'{"queries": ["' + "鞋".encode() * (MEGABYTE // 3) + b'"]}'),
    one("punctuation only", {"query": "???"}),
    one("lone surrogate", b'{"query": "red \\ud83d shoes"}'),
    one("NUL inside", {"query": "red\0shoes"}),
    one("emoji", {"query": FAMILY}),
    one("right to left", {"query": RIGHT_TO_LEFT}),
    one("zero-width inside", {"query": "r\u200be\u200dd sho\ufeffes"}),
    one("400 combining marks", {"query": COMBINING}),
    one("NaN as a word", {"query": "NaN infinity Infinity"}),
    Case("no content type", request("POST", ONE, "Content-Length: 22", body=b'{"query": "red shoes"}')),
    Case("content type with a charset",
         request("POST", ONE, "Content-Type: Application/JSON; charset=utf-8", "Content-Length: 22",
                 body=b'{"query": "red shoes"}')),
    Case("content type ending in +json",
         request("POST", ONE, "Content-Type: application/vnd.shop+json", "Content-Length: 22",
                 body=b'{"query": "red shoes"}')),
]  # fmt: skip

FAST_CASES = [*QUERIES, *FIELDS, *LISTS, *JSONS, *TRANSPORT, *ODD]
CASES = [*QUERIES, *FIELDS, *LISTS, *JSONS, *TRANSPORT, *SLOW, *ODD]


def exchange(address: tuple[str, int], case: Case) -> Reply:
    """What the service at ``address`` says to this case. Raises ``Closed`` when it says nothing."""
    with Connection(address) as connection:
        connection.send(case.request)
        if case.trickle:
            connection.trickle(case.trickle)
        return connection.reply()


def describe(case: Case, reply: Reply | None) -> list[str]:
    """One row of the table: case, status, type, detail."""
    if reply is None:
        return [case.name, "closed", "", ""]
    document = json.loads(reply.body)
    if reply.status == 200:
        answers = document.get("results", [document])
        cut = " truncated" if any(answer["truncated"] for answer in answers) else ""
        return [case.name, "200", "", f"{len(answers)} answer{'s' * (len(answers) > 1)}{cut}"]
    detail = "".join(sign if sign.isprintable() else " " for sign in document["detail"]).replace("|", "\\|")
    return [case.name, str(reply.status), document["type"].rpartition(":")[2], detail]


def main(url: str = "http://127.0.0.1:8080") -> int:
    parts = urlsplit(url)
    address = (parts.hostname or "127.0.0.1", parts.port or 80)

    def run(case: Case) -> Reply | None:
        try:
            return exchange(address, case)
        except Closed:
            return None

    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(run, CASES))
    print("| case | status | type | detail |\n| --- | --- | --- | --- |")
    for case, reply in zip(CASES, replies, strict=True):
        print(f"| {' | '.join(describe(case, reply))} |")
    wrong = [case for case, reply in zip(CASES, replies, strict=True) if reply is None or reply.status != case.status]
    for case in wrong:
        print(f"{case.name}: {case.status} is documented", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
