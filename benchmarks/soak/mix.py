"""What is asked: requests of every kind, drawn from a seed, each with what may come back."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, get_args

from benchmarks.bad_inputs import CASES, Case
from benchmarks.raw_http import post
from benchmarks.soak.corpus import PATIENCE_MS, Corpus

# patient: one query with the default deadline · list: 1 to --list-size of them · hurried: a deadline that may be missed
# · leaving: a client that closes its socket at a random moment · bad: input that must be refused
Kind = Literal["patient", "list", "hurried", "leaving", "bad"]
KINDS: tuple[Kind, ...] = get_args(Kind)
WEIGHTS = {"patient": 70, "list": 8, "hurried": 8, "leaving": 10, "bad": 4}

HURRIED_MS = 12
LEAVES_AFTER_S = 0.012  # at most: about when its answer comes
# A slow body is ten seconds of nothing; whether a client that still sends a megabyte sees the reply is luck.
BAD = [case for case in CASES if case.status >= 400 and not case.trickle and len(case.request) <= 65_536]


@dataclass(slots=True)
class Asked:
    """One request: its bytes and what they ask for; ``bad`` is the case that it is, where it is one."""

    kind: Kind
    data: bytes
    texts: tuple[str, ...] = ()
    bad: Case | None = None
    leaves_after_s: float | None = None
    intended_ns: int = 0  # when it was to leave, on the monotonic clock


class Mix:
    def __init__(self, corpus: Corpus, *, list_size: int, seed: int) -> None:
        self._corpus = corpus
        self._list_size = list_size
        self._random = random.Random(seed)

    def draw(self) -> Asked:
        """The next request of the soak."""
        (kind,) = self._random.choices(KINDS, [WEIGHTS[kind] for kind in KINDS])
        if kind == "bad":
            case = self._random.choice(BAD)
            return Asked(kind, case.request, bad=case)
        if kind == "hurried":
            return self._ask(kind, is_list=False, timeout_ms=self._random.randint(1, HURRIED_MS))
        if kind == "leaving":
            asked = self._ask(kind, is_list=self._random.random() < 0.2)
            asked.leaves_after_s = self._random.uniform(0, LEAVES_AFTER_S)
            return asked
        return self._ask(kind, is_list=kind == "list")

    def draw_patient(self) -> Asked:
        """A query or a list as the soak has them, by somebody who waits for long."""
        is_list = self._random.random() < WEIGHTS["list"] / 100
        return self._ask("list" if is_list else "patient", is_list=is_list, timeout_ms=PATIENCE_MS)

    def _ask(self, kind: Kind, *, is_list: bool, timeout_ms: int | None = None) -> Asked:
        deadline = {} if timeout_ms is None else {"timeout_ms": timeout_ms}
        if not is_list:
            text = self._random.choice(self._corpus.texts)
            return Asked(kind, post("/v1/intent", {"query": text} | deadline), (text,))
        texts = tuple(self._random.choices(self._corpus.texts, k=self._random.randint(1, self._list_size)))
        return Asked(kind, post("/v1/intents", {"queries": texts} | deadline), texts)
