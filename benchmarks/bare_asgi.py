"""The least that a reply to JSON costs on this server: ``python -m benchmarks.bare_asgi PORT``, a yardstick.

One uvicorn on one event loop, parsing the query and writing a reply of the service's size; no validation, no model.
"""

from __future__ import annotations

import sys
from typing import Any

import orjson
import uvicorn
import uvloop

REPLY = {
    "intent": "product_search",
    "confidence": 0.986027,
    "group": "product_search",
    "intents": [{"intent": "product_search", "confidence": 0.986027}] * 9,
    "groups": [{"group": "product_search", "confidence": 0.986027}] * 4,
    "source": "model",
    "model": "query-intent@1",
    "truncated": False,
}


async def app(scope: Any, receive: Any, send: Any) -> None:
    query = orjson.loads((await receive())["body"])["query"]
    body = orjson.dumps({"query": query, **REPLY})
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


if __name__ == "__main__":
    config = uvicorn.Config(
        app, port=int(sys.argv[1]), http="httptools", lifespan="off", access_log=False, log_level="warning"
    )
    uvloop.run(uvicorn.Server(config).serve())
