"""Lean routes: documented and validated as any FastAPI route, without FastAPI's own request handling, nor ASGI.

FastAPI's request handling costs several times what the rest of this service does beside the model, so the routes that
every query takes go around it: the connection gives them their exchanges (``app/exchange.py``), and FastAPI knows
them by their schemas only.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple, Protocol, TypeVar

import orjson
from fastapi import HTTPException
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from app.error_handlers import CONTENT_TYPE as PROBLEM_CONTENT_TYPE
from app.error_handlers import problem_document, problem_headers
from app.errors import InvalidField, MalformedBody, NotReady, PayloadTooLarge, QueryIntentError, UnsupportedMediaType
from app.exchange import Exchange, Headers
from app.metrics import NO_SOURCE
from app.schemas import Problem
from app.stages import Stages
from app.text import replace_lone_surrogates

logger = logging.getLogger(__name__)

JSON_HEADERS = b"content-type: application/json\r\n"
CLIENT_GONE = 499  # nginx's status for it: nobody reads the answer, but the metrics should say why there was none


class Answer(NamedTuple):
    """A 200 reply in the making; ``headers`` are lines that end in CRLF."""

    document: Any
    stages: Stages
    source: str
    headers: bytes = b""


class Observer(Protocol):
    """Told of every request once its reply is written."""

    def __call__(self, *, route: str, status: int, source: str, stages: Stages) -> None: ...


_Request = TypeVar("_Request", bound=BaseModel)
Answering = Coroutine[Any, Any, Answer]


class LeanHandler:
    """Answers the exchanges of one lean route.

    ``answer`` gets the request, and the seconds that it has waited for the event loop since it had been read; it gives
    the answer, or what to await for it. ``begin`` is called at the start of each exchange and ``observe`` at its end.
    ``log_queries`` writes the request into the log where the service fails on it, personal data as it is.
    ``closes_connections()`` makes replies say ``Connection: close``, so that clients leave a server that stops.
    """

    def __init__(
        self,
        route: str,
        model: type[_Request],
        answer: Callable[[_Request, float], Answer | Answering],
        *,
        max_body_bytes: int,
        observe: Observer,
        closes_connections: Callable[[], bool],
        begin: Callable[[], object] = lambda: None,
        log_queries: bool = False,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self.max_body_bytes = max_body_bytes
        self._route = route
        self._model: type[BaseModel] = model
        self._answer: Callable[[Any, float], Answer | Answering] = answer
        self._observe = observe
        self._closes_connections = closes_connections
        self._begin = begin
        self._log_queries = log_queries
        self._clock = clock

    def refusal_of(self, headers: Headers) -> QueryIntentError | None:
        """Too long a body or one of another type than JSON, as announced; no type says JSON."""
        for name, value in headers:
            if name == b"content-type":
                if value != b"application/json" and not _is_json(value):
                    shown = value.partition(b";")[0].strip().lower().decode("latin-1")
                    return UnsupportedMediaType(f"content-type is {shown[:64]!r}; send application/json")
            elif name == b"content-length" and (announced := _length(value)) > self.max_body_bytes:
                return PayloadTooLarge(f"a body of {announced} bytes; at most {self.max_body_bytes} are accepted")
        return None

    def __call__(self, exchange: Exchange) -> None:
        self._begin()
        request: BaseModel | None = None
        try:
            if exchange.refusal is not None:
                raise exchange.refusal
            request = decode(self._model, exchange.body)
            exchange.body = b""  # or an idle connection would keep the last one's
            answer = self._answer(request, self._clock() - exchange.read_at)
            if not isinstance(answer, Answer):
                exchange.run(self._answer_task(exchange, request, answer))
                return
            payload = orjson.dumps(answer.document)
        except Exception as error:
            self._fail(exchange, error, request)
        else:
            self._reply(exchange, answer, payload)

    async def _answer_task(self, exchange: Exchange, request: BaseModel, answering: Answering) -> None:
        try:
            answer = await answering
            payload = orjson.dumps(answer.document)
        except asyncio.CancelledError:
            if exchange.is_abandoned:  # the queue has forgotten the query by now
                self._observe(route=self._route, status=CLIENT_GONE, source=NO_SOURCE, stages=Stages())
            else:
                self._fail(exchange, NotReady("the service is stopping"), request)
        except Exception as error:
            self._fail(exchange, error, request)
        else:
            self._reply(exchange, answer, payload)

    def _reply(self, exchange: Exchange, answer: Answer, payload: bytes) -> None:
        self._end(exchange, 200, JSON_HEADERS + answer.headers, payload, answer.source, answer.stages)

    def _fail(self, exchange: Exchange, error: Exception, request: BaseModel | None) -> None:
        document = problem_document(error, request_id=exchange.request_id)
        status: int = document["status"]
        if status == 500:
            logger.error("request %s failed", exchange.request_id, exc_info=error)
            if self._log_queries and request is not None:
                logger.error("it failed on this request", extra={"request": request.model_dump()})
        headers = b"".join(b"%b: %b\r\n" % header for header in problem_headers(document))
        self._end(exchange, status, headers, orjson.dumps(document), NO_SOURCE, Stages())

    def _end(
        self, exchange: Exchange, status: int, headers: bytes, payload: bytes, source: str, stages: Stages
    ) -> None:
        stages = Stages(stages.tokenize, stages.queue, stages.inference, self._clock() - exchange.read_at)
        headers += b"server-timing: %b\r\n" % stages.server_timing()
        # What is left of a body that was refused unread can't be told from the next request.
        exchange.reply(status, headers, payload, close=self._closes_connections() or exchange.refusal is not None)
        self._observe(route=self._route, status=status, source=source, stages=stages)


class LeanRoute(APIRoute):
    """FastAPI's view of a lean route: its place in ``/openapi.json`` and its handler."""

    def __init__(
        self,
        path: str,
        handler: LeanHandler,
        *,
        body: type[BaseModel],
        reply: type[BaseModel],
        summary: str,
        statuses: tuple[int, ...],
    ) -> None:
        async def endpoint(body: Any) -> None:
            raise HTTPException(404)  # for what Starlette takes for this path though it is not, such as one with %0A

        endpoint.__annotations__ = {"body": body}
        # A reference instead of FastAPI's "model", which would put the schema under application/json.
        problem = {"schema": {"$ref": f"#/components/schemas/{Problem.__name__}"}}
        problems: dict[int | str, dict[str, Any]] = {
            status: {"content": {PROBLEM_CONTENT_TYPE: problem}} for status in statuses
        }
        super().__init__(
            path,
            endpoint,
            methods=["POST"],
            response_model=reply,
            summary=summary,
            description=body.__doc__ or "",
            responses=problems,
        )
        self.handler = handler


def decode(model: type[_Request], body: bytes | bytearray) -> _Request:
    """The request in ``body``. Raises ``MalformedBody`` or ``InvalidField`` for the first field that is wrong."""
    try:
        try:
            if b"NaN" not in body and b"Infinity" not in body:  # which pydantic takes for JSON
                return model.model_validate_json(body)
        except ValidationError as error:
            if error.errors(include_url=False, include_input=False)[0]["type"] != "json_invalid":
                raise
        return model.model_validate(_parse_leniently(body))
    except ValidationError as error:
        raise _translate(error.errors(include_url=False)[0]) from None


def _translate(problem: ErrorDetails) -> InvalidField | MalformedBody:
    """Pydantic's description of what is wrong with a field, in the service's own terms."""
    field = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in problem["loc"]).lstrip(".")
    if not field:
        return MalformedBody("the body is JSON, but not an object")
    if problem["type"] == "missing":
        return InvalidField(field, "is missing")
    context = problem.get("ctx", {})
    limit = next((context[key] for key in ("ge", "le", "min_length") if key in context), None)
    value = problem["input"]
    return InvalidField(field, problem["msg"], value="null" if value is None else value, limit=limit)


def _parse_leniently(body: bytes | bytearray) -> Any:
    """What the strict parser refused: JSON may carry half a surrogate pair, which is replaced, and nothing else."""
    try:
        text = body.decode("utf-8")
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_replace_in_pairs)
    except UnicodeDecodeError as error:
        raise MalformedBody(f"the body is not UTF-8 at byte {error.start}") from None
    except json.JSONDecodeError as error:
        raise MalformedBody(f"the body is not JSON: {error}") from None
    except RecursionError:
        raise MalformedBody("the body is nested too deeply") from None
    except ValueError:
        raise MalformedBody("the body holds a number of too many digits") from None


def _replace_in_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {replace_lone_surrogates(name): _replace(value) for name, value in pairs}


def _replace(value: Any) -> Any:
    if isinstance(value, str):
        return replace_lone_surrogates(value)
    return [_replace(item) for item in value] if isinstance(value, list) else value


def _refuse_constant(name: str) -> Any:
    raise MalformedBody(f"the body is not JSON: {name} is no JSON value")


def _length(content_length: bytes) -> int:
    """0 where there are more digits than any length has, zeros for example: then it shows as the body comes."""
    return int(content_length) if content_length.isdigit() and len(content_length) < 20 else 0


def _is_json(content_type: bytes) -> bool:
    media_type = content_type.partition(b";")[0].strip().lower()
    return media_type == b"application/json" or media_type.endswith(b"+json")
