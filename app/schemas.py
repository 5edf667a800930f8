"""What goes over the wire."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, FailFast, Field

MAX_TOP_K = 100
MAX_TIMEOUT_MS = 10_000


class _Request(BaseModel):
    # Unknown fields are kept so that they can be counted, then ignored: a newer client may talk to an older server.
    model_config = ConfigDict(strict=True, extra="allow")

    top_k: Annotated[int, Field(ge=1, le=MAX_TOP_K)] | None = Field(
        None, description="How many intents to list, the most confident first; all of them if absent."
    )
    timeout_ms: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_MS)] | None = Field(
        None, description="Milliseconds the caller waits for the answer; the server's default if absent."
    )
    abstain: bool = Field(
        False,
        description="Give null as intent and group when the confidence is under the bundle's `abstain_threshold`, or "
        "the group's under its own of `group_thresholds` (`GET /v1/model`).",
    )


class IntentRequest(_Request):
    """One query of a shopper."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"query": "where is my order"}]})

    query: str = Field(description="The text of the search box, as typed. Must hold a visible character.")


class IntentListRequest(_Request):
    """Several queries, answered in order. Single queries go ahead of them."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"queries": ["usb c cable", "cancel my order"]}]})

    # Fails at the first bad item: an error for each of half a million would hold up every other query for seconds.
    queries: Annotated[list[str], FailFast(), Field(min_length=1)] = Field(
        description="The texts, each as in a single request."
    )


class ScoredIntent(BaseModel):
    intent: str
    confidence: float


class ScoredGroup(BaseModel):
    group: str
    confidence: float


class IntentReply(BaseModel):
    """The ranked intents of one query. Pages switch on ``group``."""

    query: str = Field(description="The query as received.")
    intent: str | None = Field(description="The most confident intent; null where the model abstains.")
    confidence: float = Field(description="The probability of `intent`, 0 to 1.")
    group: str | None = Field(description="The most confident group; may belong to another label than `intent`.")
    intents: list[ScoredIntent]
    groups: list[ScoredGroup] = Field(description="Each group's confidence is the sum over its labels.")
    source: Literal["model", "cache", "override", "fallback"] = Field(description="Where the answer comes from.")
    model: str = Field(description="`name@version` of the bundle.")
    truncated: bool = Field(description="Whether the query was too long and its end was not looked at.")


class Problem(BaseModel):
    """An RFC 9457 problem."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(description="`urn:query-intent:problem:…`, stable: switch on this.")
    title: str
    status: int
    detail: str = Field(description="What to do about it, for a person.")
    request_id: str | None = None
    field: str | None = Field(None, description="The field at fault, as in `queries[3]`.")
    value: str | None = Field(None, description="What was sent, clipped.")
    limit: Any = Field(None, description="What would have been accepted.")
    retry_after_ms: int | None = Field(None, description="When trying again makes sense.")


class IntentListReply(BaseModel):
    results: list[IntentReply | Problem] = Field(
        description="In the order of the queries; a problem stands in the place of a query on which inference failed."
    )
