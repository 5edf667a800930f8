"""The queries that benchmarks send: people's own product queries out of the raw data sets (WebShop, WANDS, ESCI)."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path


def shop_queries(folder: Path) -> list[str]:
    """Distinct queries in a fixed random order."""
    goals = json.loads((folder / "webshop" / "goal_query_map.json").read_text(encoding="utf-8"))
    wands = (folder / "wands" / "query.csv").read_text(encoding="utf-8").splitlines()[1:]
    esci = (folder / "esci_sample" / "esci_us_queryset.txt").read_text(encoding="utf-8").splitlines()
    queries = [query for each in goals.values() for query in each]
    queries += [line.split("\t")[1] for line in wands]
    queries += esci
    distinct = [query for query in dict.fromkeys(map(str.strip, queries)) if query]
    random.Random(0).shuffle(distinct)
    return distinct


def write_queries(path: Path) -> bool:
    """Write the queries, one a line, where ``QUERY_INTENT_DATA`` names the data; False where it doesn't."""
    folder = os.environ.get("QUERY_INTENT_DATA")
    if not folder:
        return False
    path.write_text("\n".join(shop_queries(Path(folder))) + "\n", encoding="utf-8")
    return True
