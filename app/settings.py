"""Settings: one frozen object, read once at start from ``QUERY_INTENT_…`` variables and the flags of the same name.

Each field's description says what it bounds and when to change it; ``query-intent serve --help`` shows the same text.
An unknown name or a bad value stops the start. Components get plain values from here, never this object.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from app.bundle_sources import check_address
from app.emf import check_namespace, parse_dimensions
from app.errors import SettingsError

PREFIX = "QUERY_INTENT_"
# Names under the prefix that are not the service's: the folder of raw data sets, for training and tests.
FOREIGN = frozenset({"QUERY_INTENT_DATA"})

MIN_CACHE_BYTES = 65_536  # some two hundred answers

# By which idle connections outlive the balancer's own time-out: a query may be on its way when that ends.
BALANCER_MARGIN_S = 5
EMF_OFF = "off"

SHIPPED_BUNDLE = Path(__file__).parent.parent / "models" / "bundles" / "query-intent"

Port = Annotated[int, Field(ge=0, le=65535)]
Host = Annotated[str, Field(min_length=1)]  # an empty one would mean every interface
Target = Literal["auto", "cpu", "torch", "inf1", "inf2", "null"]


def _nothing_or_enough(cache_bytes: int) -> int:
    if 0 < cache_bytes < MIN_CACHE_BYTES:
        raise PydanticCustomError(
            "too_small", "holds next to nothing; give at least {least}, or 0 for no cache", {"least": MIN_CACHE_BYTES}
        )
    return cache_bytes


def _folder_or_address(bundle: str) -> str:
    try:
        return check_address(bundle)
    except ValueError as error:
        raise PydanticCustomError("bundle_address", "{problem}", {"problem": str(error)}) from None


def _namespace(emf: str) -> str:
    if emf != EMF_OFF:
        _checked(check_namespace, emf)
    return emf


def _dimensions(text: str) -> str:
    _checked(parse_dimensions, text)
    return text


def _checked(check: Callable[[str], object], value: str) -> None:
    try:
        check(value)
    except ValueError as error:
        raise PydanticCustomError("cloudwatch", "{reason}", {"reason": str(error)}) from None


# A path stays as it is written: a link is followed when the bundle is taken.
Bundle = Annotated[str, Field(min_length=1), BeforeValidator(os.fspath), AfterValidator(_folder_or_address)]


class Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    host: Host = Field("127.0.0.1", description="Address of the traffic port; 0.0.0.0 in a container.")
    port: Port = Field(8080, description="Traffic port; 0 takes a free one.")
    ops_host: Host = Field("127.0.0.1", description="Address of the operations port; 0.0.0.0 in a container.")
    ops_port: Port = Field(8081, description="Operations port: health of the whole service and /metrics.")
    bundle: Bundle = Field(
        str(SHIPPED_BUNDLE),
        description="The model bundle: a folder, s3://BUCKET/PREFIX#sha256=DIGEST (of its bundle.json), or a file "
        "whose first line is one of these. Taken at the start, and again at SIGHUP.",
    )
    target: Target = Field(
        "auto",
        description="Which compiled form of the model runs: cpu, torch, inf1, inf2 (Inferentia 1 and 2), or null (no "
        "model: what the service itself costs). auto takes the best that bundle and machine have.",
    )
    null_ms: Annotated[float, Field(ge=0, le=10_000)] = Field(
        0, description="Milliseconds a row takes on the null target."
    )
    workers: Annotated[int, Field(ge=0, le=256)] = Field(
        0, description="Worker processes; 0 takes one for every four NeuronCores, or cores of the CPU budget."
    )
    replicas: Annotated[int, Field(ge=0, le=256)] = Field(
        0, description="Copies of the model a worker, one thread each; 0 shares the cores out over the workers."
    )
    placement: Literal["replicas", "data-parallel"] = Field(
        "replicas",
        description="On Inferentia, a copy of the model on each core with a row of its own; or one copy a worker, "
        "which the SDK's DataParallel spreads over its cores, all of which then wait for the slowest. data-parallel "
        "needs a target of one query a row.",
    )
    quorum: Annotated[float, Field(ge=0, le=1)] = Field(
        0.5, description="Share of the replicas under which a service that was ready says it is not."
    )
    slo_ms: Annotated[float, Field(gt=0, le=10_000)] = Field(
        10,
        description="Latency objective: bounds what one row may hold. Raise it for throughput, lower it for the tail.",
    )
    timeout_ms: Annotated[int, Field(ge=1, le=10_000)] = Field(
        100,
        description="Deadline of a query that names none, from when it has been read. Who would miss it gets 429, "
        "who was let in and missed it 504.",
    )
    max_queries: Annotated[int, Field(ge=1, le=10_000)] = Field(128, description="Queries in one list at most.")
    max_body_bytes: Annotated[int, Field(ge=256)] = Field(
        65_536, description="Bytes in the body of a single query at most."
    )
    max_list_body_bytes: Annotated[int, Field(ge=256)] = Field(
        1_048_576, description="Bytes in the body of a list at most."
    )
    max_connections: Annotated[int, Field(ge=1)] = Field(
        4096, description="Open connections of a worker at most; one more is answered 503 and closed."
    )
    queue_tokens: Annotated[int, Field(ge=16)] = Field(
        16_384, description="Tokens that may wait in a worker. Bounds memory; deadlines bound waiting long before."
    )
    cache_bytes: Annotated[int, Field(ge=0), AfterValidator(_nothing_or_enough)] = Field(
        16_777_216,
        description="Memory of a worker for answers of before, some 340 bytes each; 0 turns that off, and the sharing "
        "of a computation by identical queries in flight as well.",
    )
    cache_ttl_s: Annotated[float, Field(gt=0)] = Field(
        3600,
        description="Seconds that an answer is kept. It can't go stale, since the model gives a text the same answer "
        "for as long as it is served; this bounds how long anything is remembered.",
    )
    warm_queries: Path | None = Field(
        None,
        description="File of queries, the most frequent first, whose answers a worker has in its cache before it says "
        "that it is ready: a line each, or the column query of a csv, tsv or jsonl. As many as the cache holds, and "
        "for 30 seconds at most.",
    )
    keep_alive_s: Annotated[int, Field(ge=1)] = Field(
        75, description="Seconds that an idle connection stays open. Keep it over the load balancer's idle time-out."
    )
    balancer_idle_s: Annotated[int, Field(ge=0)] = Field(
        0,
        description="Seconds after which the load balancer closes an idle connection; 0 where there is none. A start "
        "whose KEEP_ALIVE_S isn't 5 longer is refused: the balancer would send queries into connections that close.",
    )
    read_timeout_s: Annotated[float, Field(gt=0)] = Field(
        10, description="Seconds in which the headers, and then the body, of a request must have arrived."
    )
    load_timeout_s: Annotated[float, Field(gt=0)] = Field(
        300, description="Seconds that a worker may take to load and warm its replicas before it is given up."
    )
    stall_timeout_s: Annotated[float, Field(gt=0)] = Field(
        10, description="Seconds without a sign of life after which a worker that was ready is replaced."
    )
    drain_delay_s: Annotated[float, Field(ge=0)] = Field(
        0,
        description="Seconds to serve on after SIGTERM, readiness being 503, until balancers have noticed. 20 in ECS.",
    )
    drain_timeout_s: Annotated[float, Field(ge=0)] = Field(
        10, description="Seconds that requests in flight then get to finish; what still waits is answered 503."
    )
    priors: Path | None = Field(
        None, description="JSON of each label's share in this deployment's traffic; corrects confidences for it."
    )
    overrides: Path | None = Field(
        None, description="A tsv of query and intent that goes before the model; read again when it changes."
    )
    fallback: Literal["on", "off"] = Field(
        "on",
        description="Answer a single query that the model can't in time (overload, no replica) from the bundle's small "
        "linear student, and one that names no timeout_ms after SLO_MS; off refuses it (429, 503, 504) and waits for "
        "TIMEOUT_MS.",
    )
    emf: Annotated[str, AfterValidator(_namespace)] = Field(
        EMF_OFF,
        description="Namespace of CloudWatch under which metrics are written to standard output once a minute, in the "
        "embedded metric format; off writes none.",
    )
    emf_dimensions: Annotated[str, AfterValidator(_dimensions)] = Field(
        "Service=query-intent",
        description="Dimensions of those metrics, as Name=value,Name=value. Each combination is paid for: name what "
        "differs between deployments, not between tasks.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe records written.")
    log_queries: bool = Field(
        False, description="Write query text to error logs. It is personal data: off unless needed."
    )

    @model_validator(mode="after")
    def _ports_differ(self) -> Settings:
        if 0 < self.port == self.ops_port and self.host == self.ops_host:
            raise ValueError(f"ops_port: {self.ops_port} is the traffic port as well")
        return self

    @model_validator(mode="after")
    def _the_balancer_closes_first(self) -> Settings:
        if self.balancer_idle_s > 0 and self.keep_alive_s < self.balancer_idle_s + BALANCER_MARGIN_S:
            raise ValueError(
                f"keep_alive_s: {self.keep_alive_s} is too short for balancer_idle_s {self.balancer_idle_s}; it must "
                f"be {self.balancer_idle_s + BALANCER_MARGIN_S} at least, or queries meet connections that close"
            )
        return self

    @model_validator(mode="after")
    def _there_is_a_cache_to_warm(self) -> Settings:
        if self.warm_queries is not None and not self.cache_bytes:
            raise ValueError("warm_queries: there is no cache to warm, since cache_bytes is 0")
        return self

    @classmethod
    def read(cls, environ: Mapping[str, str], flags: Mapping[str, Any] | None = None) -> Settings:
        """Settings from the environment, overruled by ``flags`` (field name to value, ``None`` meaning not given).

        Raises ``SettingsError`` that names the variable or flag, the value and the limit.
        """
        values: dict[str, Any] = {
            name[len(PREFIX) :].lower(): value
            for name, value in environ.items()
            if name.startswith(PREFIX) and name not in FOREIGN
        }
        values |= {name: value for name, value in (flags or {}).items() if value is not None}
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise SettingsError("; ".join(_explain(problem) for problem in error.errors(include_url=False))) from None


def _explain(problem: Any) -> str:
    if not problem["loc"]:
        return str(problem["ctx"]["error"])
    field = str(problem["loc"][0])
    if problem["type"] == "extra_forbidden":
        return f"{PREFIX}{field.upper()}: no such setting; see query-intent serve --help"
    return f"{PREFIX}{field.upper()}={problem['input']}: {problem['msg']}"
