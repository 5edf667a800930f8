"""The version of the distribution, for replies, metrics and ``--version``."""

from __future__ import annotations

from importlib.metadata import version

VERSION = version("query-intent")
