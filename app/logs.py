"""Logs: one JSON object a line on standard error, and never the text of a query."""

from __future__ import annotations

import logging
import re
import sys

from pythonjsonlogger.json import JsonFormatter

_UP_TO_REPR = re.compile(r"[\n(<'\"]")


class _WithoutQueries(logging.Filter):
    """Takes the exception's message out of a record, since the message of a model's error may quote its input."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name == "asyncio":
            # Its messages go on with the repr of futures, exceptions and a callback's arguments.
            record.msg, record.args = _UP_TO_REPR.split(record.getMessage(), maxsplit=1)[0].rstrip(), None
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            frames = []
            frame = error.__traceback__
            while frame is not None:
                code = frame.tb_frame.f_code
                frames.append(f"{code.co_filename}:{frame.tb_lineno} {code.co_name}")
                frame = frame.tb_next
            record.error_type = type(error).__name__
            record.error_trace = frames
            record.exc_info = record.exc_text = None  # the text, too, which a handler before this one may have cached
        return True


def configure_logging(level: str, *, worker: int | None = None, log_queries: bool = False) -> None:
    """Send every logger's records to standard error as JSON. ``worker`` is written into each line."""
    handler = logging.StreamHandler(sys.stderr)
    static = {} if worker is None else {"worker": worker}
    handler.setFormatter(
        JsonFormatter(
            "%(asctime)s %(levelname)s %(name)s %(message)s",
            rename_fields={"asctime": "time", "levelname": "level", "name": "logger"},
            static_fields=static,
        )
    )
    if not log_queries:
        handler.addFilter(_WithoutQueries())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    # Its lifecycle messages repeat ours; a record for each request would cost more than the request.
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("uvicorn.access").disabled = True
