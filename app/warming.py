"""Warm queries: the answers to what a shop is asked most, in the cache before a worker says that it is ready.

Before readiness, because a service that is sized for the hits of its cache can't carry the same traffic without them: a
worker that took its share with an empty cache would begin with an overload. Bounded, because a deployment waits for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from app.classifier import Classifies
from app.errors import Overloaded, QueryIntentError, SettingsError
from app.tools.query_files import QueryFileError, read_file

logger = logging.getLogger(__name__)

LIMIT_S = 30.0
CHUNK = 32  # queries a list: some rows for each replica, soon over where a shopper's query is there already
PROGRESS_S = 2.0


def read_warm_queries(path: Path, *, limit: int, is_visible: Callable[[str], bool]) -> list[str]:
    """The first ``limit`` different queries of a file in which anything ``is_visible``.

    Raises ``SettingsError`` that names file and line.
    """
    queries: dict[str, None] = {}
    try:
        for row in read_file(path):
            if is_visible(row.text):
                queries[row.text] = None
            if len(queries) == limit:
                break
    except QueryFileError as error:
        raise SettingsError(f"warm queries {error}") from None
    return list(queries)


async def warm(
    classifier: Classifies, queries: Sequence[str], *, clock: Callable[[], float] = time.perf_counter
) -> None:
    """Have ``queries`` answered, and so cached, for ``LIMIT_S`` seconds at most; what can't be is left out."""
    started = said = clock()
    answered = 0
    for first in range(0, len(queries), CHUNK):
        left_s = started + LIMIT_S - clock()
        if left_s <= 0:
            break
        try:
            predictions = await classifier.classify_list(queries[first : first + CHUNK], timeout_s=left_s)
        except Overloaded as error:  # shoppers are here already, and go first
            await asyncio.sleep(min(left_s, error.retry_after_s))
        except QueryIntentError as error:
            logger.warning("warming the cache ended early", extra={"why": str(error)})
            break
        else:
            answered += sum(not isinstance(each.ranked, Exception) for each in predictions)
        if clock() - said >= PROGRESS_S:
            said = clock()
            logger.info("warming the cache", extra={"queries": answered, "of": len(queries)})
    seconds = round(clock() - started, 2)
    logger.info("the cache is warm", extra={"queries": answered, "of": len(queries), "seconds": seconds})
