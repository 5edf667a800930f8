"""Logs: one JSON object a line, and never the text of a query."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

import pytest
import uvloop

from app.logs import configure_logging

SECRET = "my order 12345 for anna"


pytestmark = pytest.mark.usefixtures("loggers_as_they_were")


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    out, err = capsys.readouterr()
    assert out == ""
    return [json.loads(line) for line in err.splitlines()]


def fail_on(query: str) -> None:
    try:
        raise ValueError(f"can't embed {query!r}")
    except ValueError as error:
        raise RuntimeError(f"failed on {query!r}") from error


def test_a_record_is_one_json_object_on_standard_error(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    logging.getLogger("app.worker").info("ready after %d s", 3, extra={"replicas": 2})
    (line,) = lines(capsys)
    assert line.pop("time")
    assert line == {"level": "INFO", "logger": "app.worker", "message": "ready after 3 s", "replicas": 2}


def test_a_worker_writes_its_index_into_each_line(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", worker=0)
    logging.getLogger("app").info("a")
    logging.getLogger("app").warning("b")
    assert [line["worker"] for line in lines(capsys)] == [0, 0]


@pytest.mark.parametrize(("level", "written"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_less_severe_records_are_not_written(capsys: pytest.CaptureFixture[str], level: str, written: int) -> None:
    configure_logging(level)
    for severity in (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR):
        logging.getLogger("app").log(severity, "x")
    assert len(lines(capsys)) == written


def test_configuring_twice_does_not_write_twice(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    configure_logging("info", worker=1)
    logging.getLogger("app").info("once")
    assert len(lines(capsys)) == 1


def test_the_web_server_s_own_chatter_is_left_out_and_its_errors_are_not(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("debug")
    logging.getLogger("uvicorn.access").warning("GET / 200")
    logging.getLogger("uvicorn.error").info("Application startup complete.")
    logging.getLogger("uvicorn.error").error("worse")
    assert [line["message"] for line in lines(capsys)] == ["worse"]


def test_an_exception_s_text_may_quote_a_query_so_only_its_type_and_place_are_written(
    capsys: pytest.CaptureFixture[str],
) -> None:
    configure_logging("info")
    try:
        fail_on(SECRET)
    except RuntimeError:
        logging.getLogger("app").exception("a row failed")
    (line,) = lines(capsys)
    assert "12345" not in json.dumps(line)
    assert line["message"] == "a row failed"
    assert line["error_type"] == "RuntimeError"
    assert [frame.split(" ")[-1] for frame in line["error_trace"]] == [
        "test_an_exception_s_text_may_quote_a_query_so_only_its_type_and_place_are_written",
        "fail_on",
    ]


def test_not_even_where_another_handler_wrote_it_out_before(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    (ours,) = logging.getLogger().handlers
    try:
        fail_on(SECRET)
    except RuntimeError:
        record = logging.LogRecord("app", logging.ERROR, __file__, 1, "a row failed", None, sys.exc_info())
    logging.Formatter().format(record)  # keeps the traceback's text on the record
    ours.handle(record)
    assert "12345" not in json.dumps(lines(capsys))


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_not_even_by_the_event_loop_which_shows_what_failed_in_its_message(
    capsys: pytest.CaptureFixture[str], make_loop: Callable[[], asyncio.AbstractEventLoop]
) -> None:
    configure_logging("info")

    async def leave_failures_behind() -> None:
        loop = asyncio.get_running_loop()
        loop.call_soon(fail_on, SECRET)
        task = loop.create_task(asyncio.to_thread(fail_on, SECRET))
        await asyncio.wait({task})
        del task
        gc.collect()

    loop = make_loop()
    try:
        loop.run_until_complete(leave_failures_behind())
        loop.run_until_complete(loop.shutdown_default_executor())
    finally:
        loop.close()

    written = lines(capsys)
    assert "12345" not in json.dumps(written)
    callback, task = [line["message"] for line in written]
    assert callback.startswith("Exception in callback")
    assert task == "Task exception was never retrieved"
    assert all(line["error_type"] == "RuntimeError" for line in written)
    assert all(line["error_trace"][-1].endswith("fail_on") for line in written)


def test_exc_info_without_an_exception_is_no_trouble(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info")
    logging.getLogger("app").error("nothing is being handled", exc_info=True)
    assert lines(capsys)[0]["message"] == "nothing is being handled"


def test_asked_for_the_whole_traceback_is_written(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("info", log_queries=True)
    try:
        fail_on(SECRET)
    except RuntimeError:
        logging.getLogger("app").exception("a row failed")
    assert SECRET in lines(capsys)[0]["exc_info"]
