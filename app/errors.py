"""What can go wrong, without HTTP in it; ``app/error_handlers.py`` says what each looks like to a client."""

from __future__ import annotations

import enum


class QueryIntentError(Exception):
    """Base of everything the service raises on purpose. The message is written for the person who reads it."""


class StartError(QueryIntentError):
    """The service can't start as it was asked to: shown as one line, never as a traceback."""


class SettingsError(StartError):
    """A setting is unknown or out of its range; the message names setting, value and limit."""


class BundleError(StartError):
    """A bundle is incomplete, damaged or not for this version; the message names bundle, file and reason."""


class BackendError(StartError):
    """An engine or device isn't there, or doesn't give the answers its bundle promises."""


class RequestError(QueryIntentError):
    """Base of what is wrong with one request."""


class MalformedRequest(RequestError):
    """What came isn't a request of HTTP/1.1."""


class MalformedBody(RequestError):
    """The body isn't JSON in UTF-8."""


class UnsupportedMediaType(RequestError):
    """The body says that it's something else than JSON."""


class BodyTooSlow(RequestError):
    """The body didn't arrive in time."""


class PayloadTooLarge(RequestError):
    """More bytes, queries or tokens than can ever be taken."""


class InvalidField(RequestError):
    """A field is missing or out of its limits."""

    def __init__(self, field: str, detail: str, *, value: object = None, limit: object = None) -> None:
        super().__init__(f"{field}: {detail}")
        self.field = field
        self.detail = detail
        self.value = value
        self.limit = limit


class Overloaded(QueryIntentError):
    """The answer would come too late; in ``retry_after_s`` it's this request's turn to come back."""

    def __init__(self, message: str, *, retry_after_s: float) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class DeadlineExceeded(QueryIntentError):
    """The query was accepted and its answer didn't come before its deadline."""


class InferenceFailed(QueryIntentError):
    """The model failed on this query, and failed again on it alone."""


class Remedy(enum.Enum):
    """What becomes of a replica whose core failed."""

    BACK_OFF = "back off"  # it was only busy
    RETIRE = "retire"  # it computes no more
    RESTART = "restart"  # nothing in this process does


class CoreFailed(QueryIntentError):
    """The core failed and not the query, so that its row can run elsewhere; ``fault`` is its name in the metrics."""

    def __init__(self, message: str, *, fault: str, remedy: Remedy) -> None:
        super().__init__(message)
        self.fault = fault
        self.remedy = remedy


class NotReady(QueryIntentError):
    """No replica can answer: still loading, all lost, or past the drain's bound."""

    def __init__(self, message: str, *, retry_after_s: float = 1.0) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
