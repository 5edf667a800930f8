"""``query-intent classify``: the shipped model's answers on the command line, from arguments, files and pipes."""

from __future__ import annotations

import json
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from app.tools.classify import CHUNK, COUNTABLE_BYTES, command, find_queries
from app.tools.query_files import format_of
from tests import needs

PRODUCT, TRACKING = "usb c charging cable 2m", "where is my parcel"


def classify(*arguments: str, piped: str | bytes = "") -> Result:
    return CliRunner().invoke(command, arguments, input=piped)


def documents(result: Result) -> list[dict[str, Any]]:
    assert result.exit_code == 0, result.stderr
    return [json.loads(line) for line in result.stdout.splitlines()]


@needs.OPENVINO
class TestAnswers:
    def test_each_query_gets_one_line_of_json_with_its_ranked_intents(self) -> None:
        product, tracking = documents(classify(PRODUCT, TRACKING, "--top-k", "2"))
        assert (product["query"], product["intent"], product["group"]) == (PRODUCT, "product_search", "product_search")
        assert (tracking["intent"], tracking["group"]) == ("order_tracking", "help")
        assert tracking["intents"][0]["intent"] == "order_tracking"
        assert len(tracking["intents"]) == 2
        assert tracking["confidence"] == tracking["intents"][0]["confidence"]

    def test_a_table_shows_query_group_intent_and_confidence(self) -> None:
        result = classify(TRACKING, "x" * 60, "--format", "table")
        first, second = result.stdout.splitlines()
        assert first.split()[:6] == ["where", "is", "my", "parcel", "help", "order_tracking"]
        assert second.startswith("x" * 43 + "…")

    def test_a_blank_line_says_so_in_its_place_and_costs_the_others_nothing(self) -> None:
        first, blank, last = documents(classify(piped=f"{PRODUCT}\n  \n{TRACKING}\n"))
        assert blank == {"query": "  ", "error": "blank"}
        assert (first["intent"], last["intent"]) == ("product_search", "order_tracking")

    def test_more_queries_than_a_chunk_come_back_in_order(self) -> None:
        queries = [f"{PRODUCT} {number}" for number in range(CHUNK + 3)]
        answers = documents(classify("--file", "-", piped="\n".join(queries)))
        assert [answer["query"] for answer in answers] == queries


class TestFiles:
    @pytest.mark.parametrize(
        ("name", "content", "column"),
        [
            ("queries.txt", f"{PRODUCT}\r\n{TRACKING}\r\n", None),
            ("queries.csv", f'id,query\n1,"{PRODUCT}"\n2,"{TRACKING}"\n', None),
            ("queries.csv", f"\ufefftext,n\n{PRODUCT},1\n{TRACKING},2\n", None),
            ("queries.tsv", f"n\tsearch\n1\t{PRODUCT}\n2\t{TRACKING}\n", "search"),
            ("queries.jsonl", f'{{"query": "{PRODUCT}"}}\n\n{{"query": "{TRACKING}"}}\n', None),
            ("queries.jsonl", f'{{"q": "{PRODUCT}"}}\n{{"q": "{TRACKING}"}}\n', "q"),
        ],
    )
    def test_queries_are_read_by_the_files_suffix_and_from_a_pipe_by_the_format_given(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, content: str, column: str | None
    ) -> None:
        path = tmp_path / name
        path.write_bytes(content.encode())
        queries, count = find_queries((), str(path), None, column)
        assert (list(queries), count) == ([PRODUCT, TRACKING], 2)

        with TextIOWrapper(BytesIO(content.encode())) as piped:
            monkeypatch.setattr("sys.stdin", piped)
            queries, count = find_queries((), None, format_of(path), column)
            assert (list(queries), count) == ([PRODUCT, TRACKING], None)

    def test_the_format_given_goes_before_the_suffix(self, tmp_path: Path) -> None:
        path = tmp_path / "queries.log"
        path.write_text(f'{{"query": "{PRODUCT}"}}\n')
        assert list(find_queries((), str(path), "jsonl", None)[0]) == [PRODUCT]

    @pytest.mark.parametrize(("piped", "arguments"), [(True, []), (False, ["--file", "queries.txt"])])
    def test_lines_of_text_have_no_column(self, piped: bool, arguments: list[str]) -> None:
        result = classify(*arguments, "--column", "text", piped="text\nsofa\n" if piped else "")
        assert (result.exit_code, "give --input-format as well" in result.stderr) == (2, True)

    def test_a_pipe_that_is_not_utf_8_is_named_with_its_line(self) -> None:
        result = classify(piped=b"sofa\ncaf\xe9\n")
        assert result.exit_code == 2
        assert "standard input, line 2: can't be read: byte 0xe9 is not UTF-8" in result.stderr

    def test_a_small_files_errors_come_before_its_first_answer(self, tmp_path: Path) -> None:
        path = tmp_path / "queries.jsonl"
        path.write_text('{"query": "sofa"}\n' * (CHUNK + 1) + "nonsense\n")
        result = classify("--file", str(path))
        assert (result.exit_code, result.stdout) == (2, "")
        assert f"line {CHUNK + 2}: not JSON" in result.stderr

    @pytest.mark.parametrize(("size", "count"), [(0, 0), (COUNTABLE_BYTES, 1), (COUNTABLE_BYTES + 1, None)])
    def test_only_a_small_file_is_read_twice_to_count_it(self, tmp_path: Path, size: int, count: int | None) -> None:
        path = tmp_path / "queries.txt"
        path.write_bytes(b"x" * size)
        assert find_queries((), str(path), None, None)[1] == count

    @needs.OPENVINO
    def test_a_pipe_is_answered_chunk_by_chunk_until_its_error(self) -> None:
        result = classify("--input-format", "jsonl", piped='{"query": "sofa"}\n' * CHUNK + "nonsense\n")
        assert (result.exit_code, len(result.stdout.splitlines())) == (2, CHUNK)
        assert f"standard input, line {CHUNK + 1}: not JSON" in result.stderr

    def test_nothing_in_is_nothing_out(self) -> None:
        assert documents(classify("--input-format", "csv", piped="query\n")) == []

    @needs.OPENVINO
    def test_a_file_is_answered_line_by_line(self, tmp_path: Path) -> None:
        path = tmp_path / "queries.csv"
        path.write_text(f"text\n{PRODUCT}\n{TRACKING}\n")
        answers = documents(classify("--file", str(path)))
        assert [answer["group"] for answer in answers] == ["product_search", "help"]

    @pytest.mark.parametrize(
        ("name", "content", "arguments", "complaint"),
        [
            ("queries.xlsx", "", [], "don't know .xlsx; use .txt, .csv, .tsv, .jsonl"),
            ("queries.csv", "a,b\n1,2\n", [], "line 1: no column 'query' or 'text'; it has a, b"),
            ("queries.csv", "a,b\n1,2\n", ["--column", "c"], "line 1: no column 'c'; it has a, b"),
            (
                "queries.jsonl",
                '{"query": "a"}\n{"title": "b"}\n',
                [],
                "line 2: no column 'query' or 'text'; it has title",
            ),
            ("queries.jsonl", "nonsense\n", [], "line 1: not JSON"),
        ],
    )
    def test_a_file_that_can_not_be_read_is_named_with_the_line_or_column(
        self, tmp_path: Path, name: str, content: str, arguments: list[str], complaint: str
    ) -> None:
        path = tmp_path / name
        path.write_text(content)
        result = classify("--file", str(path), *arguments)
        assert result.exit_code == 2
        assert f"{path}" in result.stderr
        assert complaint in result.stderr

    def test_a_file_that_is_not_there_is_named(self, tmp_path: Path) -> None:
        result = classify("--file", str(tmp_path / "none.txt"))
        assert (result.exit_code, "none.txt: No such file" in result.stderr) == (2, True)

    def test_queries_and_a_file_are_one_too_many(self) -> None:
        result = classify(PRODUCT, "--file", "queries.txt")
        assert (result.exit_code, "not both" in result.stderr) == (2, True)

    @pytest.mark.parametrize("option", [["--column", "q"], ["--input-format", "csv"]])
    def test_queries_given_have_neither_column_nor_format(self, option: list[str]) -> None:
        result = classify(PRODUCT, *option)
        assert (result.exit_code, "not for queries given" in result.stderr) == (2, True)
