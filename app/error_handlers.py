"""The one table from errors to HTTP: RFC 9457 problem documents, the same for every route."""

from __future__ import annotations

import logging
import math
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from app import errors
from app.request_id import request_id_of

logger = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"
CLIPPED_AT = 64  # characters of an offending value that are sent back


class Kind(NamedTuple):
    status: HTTPStatus
    slug: str
    title: str


# Looked up along the error's ancestry, so an entry serves its whole family.
TABLE: dict[type[Exception], Kind] = {
    errors.MalformedRequest: Kind(HTTPStatus.BAD_REQUEST, "malformed-request", "The request is not HTTP/1.1"),
    errors.MalformedBody: Kind(HTTPStatus.BAD_REQUEST, "malformed-body", "The body is not JSON in UTF-8"),
    errors.BodyTooSlow: Kind(HTTPStatus.REQUEST_TIMEOUT, "body-too-slow", "The request did not arrive in time"),
    errors.PayloadTooLarge: Kind(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "too-large", "The request is too large"),
    errors.UnsupportedMediaType: Kind(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "media-type", "The body is not JSON"),
    errors.InvalidField: Kind(
        HTTPStatus.UNPROCESSABLE_ENTITY, "invalid-field", "A field is missing or out of its limits"
    ),
    errors.Overloaded: Kind(HTTPStatus.TOO_MANY_REQUESTS, "overloaded", "The answer would come too late"),
    errors.NotReady: Kind(HTTPStatus.SERVICE_UNAVAILABLE, "not-ready", "The service can't answer now"),
    errors.DeadlineExceeded: Kind(HTTPStatus.GATEWAY_TIMEOUT, "deadline-exceeded", "The answer did not come in time"),
    errors.InferenceFailed: Kind(
        HTTPStatus.INTERNAL_SERVER_ERROR, "inference-failed", "The model failed on this query"
    ),
    Exception: Kind(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "The service failed"),
}
ROUTING = {
    404: Kind(HTTPStatus.NOT_FOUND, "not-found", "There is no such route"),
    405: Kind(HTTPStatus.METHOD_NOT_ALLOWED, "method-not-allowed", "This route has another method"),
}


def kind_of(error: Exception) -> Kind:
    return next(TABLE[ancestor] for ancestor in type(error).__mro__ if ancestor in TABLE)


def problem_document(error: Exception, *, request_id: str | None = None) -> dict[str, Any]:
    """The problem of this error as a JSON object; an unforeseen one says nothing of what is inside."""
    kind = kind_of(error)
    known = isinstance(error, errors.QueryIntentError)
    document = _document(kind, str(error) if known else "the error is in the server's log", request_id)
    if isinstance(error, errors.InvalidField):
        document["field"] = error.field
        if error.value is not None:
            document["value"] = clip(error.value)
        if error.limit is not None:
            document["limit"] = error.limit
    if (seconds := getattr(error, "retry_after_s", None)) is not None:
        document["retry_after_ms"] = math.ceil(seconds * 1e3)
    return document


def problem_headers(document: dict[str, Any]) -> list[tuple[bytes, bytes]]:
    """Headers that say the same as members of the document, for clients that read only those."""
    headers = [(b"content-type", CONTENT_TYPE.encode())]
    if (milliseconds := document.get("retry_after_ms")) is not None:
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(milliseconds / 1e3))))  # whole seconds, RFC 9110
    return headers


def clip(value: object) -> str:
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate can't be written as JSON
    return text if len(text) <= CLIPPED_AT else f"{text[:CLIPPED_AT]}…"


def add_error_handlers(app: FastAPI) -> None:
    """Give the routes that FastAPI itself serves the same problem documents as the lean ones."""
    app.add_exception_handler(HTTPException, _handle_routing)
    app.add_exception_handler(errors.QueryIntentError, _handle)
    app.add_exception_handler(Exception, _handle)


async def _handle(request: Request, error: Exception) -> Response:
    return _response(problem_document(error, request_id=request_id_of(request.scope)))


async def _handle_routing(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    kind = ROUTING.get(error.status_code) or Kind(HTTPStatus(error.status_code), "http", str(error.detail))
    detail = f"{request.method} {clip(request.url.path)}: see /docs for the routes"
    response = _response(_document(kind, detail, request_id_of(request.scope)))
    response.headers.update(error.headers or {})
    return response


def _document(kind: Kind, detail: str, request_id: str | None) -> dict[str, Any]:
    document = {
        "type": f"urn:query-intent:problem:{kind.slug}",
        "title": kind.title,
        "status": kind.status.value,
        "detail": detail,
    }
    if request_id is not None:
        document["request_id"] = request_id
    return document


def _response(document: dict[str, Any]) -> Response:
    headers = {name.decode(): value.decode() for name, value in problem_headers(document)}
    return Response(orjson.dumps(document), status_code=document["status"], headers=headers)
