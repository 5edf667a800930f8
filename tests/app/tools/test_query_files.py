"""One reader for every file of queries: what each format means, and what is said of a file that can't be read."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.tools.query_files import Format, QueryFileError, format_of, read_file, read_stream


def texts(content: str | bytes, read_as: Format, column: str | None = None) -> list[str]:
    raw = content if isinstance(content, bytes) else content.encode()
    return [row.text for row in read_stream(io.BytesIO(raw), "it", input_format=read_as, column=column)]


class TestFormats:
    def test_txt_is_a_query_a_line_blank_ones_too(self) -> None:
        assert texts("sofa\r\n\n red, blue \nlast", "txt") == ["sofa", "", " red, blue ", "last"]

    def test_csv_and_tsv_have_it_in_a_column(self) -> None:
        assert texts('id,query\n1,"lamp, red"\n2,\n', "csv") == ["lamp, red", ""]
        assert texts("id\tquery\n1\tlamp, red\n", "tsv") == ["lamp, red"]

    def test_jsonl_has_it_in_a_member_and_a_blank_line_is_nothing(self) -> None:
        assert texts('{"query": "lamp"}\n\n \n{"query": "sofa"}\n', "jsonl") == ["lamp", "sofa"]

    def test_null_is_an_empty_query_like_an_empty_cell(self) -> None:
        assert texts('{"query": null}\n{"query": ""}\n', "jsonl") == ["", ""]

    @pytest.mark.parametrize("read_as", ["txt", "csv", "tsv", "jsonl"])
    def test_nothing_but_a_header_holds_no_queries(self, read_as: Format) -> None:
        assert texts({"csv": "query\n", "tsv": "query\n"}.get(read_as, ""), read_as) == []

    @pytest.mark.parametrize(
        ("read_as", "content"),
        [("txt", "sofa\n"), ("csv", "query\nsofa\n"), ("tsv", "query\nsofa\n"), ("jsonl", '{"query": "sofa"}\n')],
    )
    def test_a_byte_order_mark_belongs_to_no_query_and_no_header(self, read_as: Format, content: str) -> None:
        assert texts(b"\xef\xbb\xbf" + content.encode(), read_as) == ["sofa"]

    def test_a_row_keeps_its_other_columns(self) -> None:
        (row,) = read_stream(io.BytesIO(b"text,split\nsofa,train\n"), "it", input_format="csv")
        assert row.record["split"] == "train"


class TestColumn:
    def test_without_a_name_it_is_query_and_else_text(self) -> None:
        assert texts("text,query\nno,yes\n", "csv") == ["yes"]
        assert texts("id,text\n1,yes\n", "csv") == ["yes"]
        assert texts('{"text": "no", "query": "yes"}\n{"text": "also"}\n', "jsonl") == ["yes", "also"]

    def test_a_named_one_is_taken_before_these(self) -> None:
        assert texts("q,query\nyes,no\n", "csv", "q") == ["yes"]
        assert texts('{"q": "yes", "query": "no"}\n', "jsonl", "q") == ["yes"]


class TestSuffix:
    @pytest.mark.parametrize(
        ("name", "read_as"),
        [("a.txt", "txt"), ("a.CSV", "csv"), ("a.tsv", "tsv"), ("b.c.jsonl", "jsonl"), ("63", "txt")],
    )
    def test_it_says_the_format_and_none_is_text(self, name: str, read_as: Format) -> None:
        assert format_of(Path(name)) == read_as

    def test_an_explicit_format_goes_before_it(self, tmp_path: Path) -> None:
        (tmp_path / "q.log").write_text('{"query": "sofa"}\n')
        assert [row.text for row in read_file(tmp_path / "q.log", input_format="jsonl")] == ["sofa"]

    def test_an_unknown_one_is_refused(self, tmp_path: Path) -> None:
        with pytest.raises(QueryFileError, match=r"q\.xlsx: don't know \.xlsx; use \.txt, \.csv, \.tsv, \.jsonl"):
            list(read_file(tmp_path / "q.xlsx"))


class TestErrors:
    @pytest.mark.parametrize(
        ("read_as", "content", "column", "complaint"),
        [
            ("txt", b"sofa\ncaf\xe9\n", None, "line 2: can't be read: byte 0xe9 is not UTF-8"),
            ("csv", b"query\nsofa\ncaf\xe9\n", None, "line 3: can't be read: byte 0xe9 is not UTF-8"),
            ("jsonl", b'{"query": "caf\xe9"}\n', None, "line 1: can't be read: byte 0xe9 is not UTF-8"),
            ("txt", b"\xff\xfes\x00", None, "line 1: can't be read: byte 0xff is not UTF-8"),
            ("csv", b"a,b\n1,2\n", None, "line 1: no column 'query' or 'text'; it has a, b"),
            ("tsv", b"a\tb\n1\t2\n", "c", "line 1: no column 'c'; it has a, b"),
            ("csv", b"", "c", "line 1: no column 'c'; it has none"),
            ("csv", b"query\n" + b"a" * 200_000, None, "line 2: can't be read: field larger"),
            ("jsonl", b'{"query": "a"}\n{"title": "b"}\n', None, "line 2: no column 'query' or 'text'; it has title"),
            ("jsonl", b'{"query": "a"}\n\n{"query":\n', None, "line 3: not JSON: "),
            ("jsonl", b'["a"]\n', None, 'line 1: not a JSON object: ["a"]'),
            ("jsonl", b'{"query": ["a"]}\n', None, "line 1: 'query' is no text: [\"a\"]"),
            ("jsonl", b'{"query": 42}\n', None, "line 1: 'query' is no text: 42"),
            ("jsonl", b'{"query": "\\ud800"}\n', None, "line 1: not JSON: "),  # half a character can't be answered
        ],
    )
    def test_they_name_the_file_the_line_and_what_was_found(
        self, read_as: Format, content: bytes, column: str | None, complaint: str
    ) -> None:
        with pytest.raises(QueryFileError) as caught:
            texts(content, read_as, column)
        assert str(caught.value).startswith(f"it, {complaint}")

    def test_a_file_that_is_not_there_and_a_folder_are_named(self, tmp_path: Path) -> None:
        with pytest.raises(QueryFileError, match=r"none\.txt: No such file"):
            list(read_file(tmp_path / "none.txt"))
        with pytest.raises(QueryFileError, match="Is a directory"):
            list(read_file(tmp_path))


class Endless(io.RawIOBase):
    """A pipe whose writer never stops."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        line = b"sofa\n"
        buffer[: len(line)] = line
        return len(line)


def test_rows_come_as_they_are_read_and_the_stream_stays_open() -> None:
    endless = io.BufferedReader(Endless())
    rows: Iterator[object] = read_stream(endless, "it", input_format="txt")
    assert [next(rows) for _ in range(3)] == [("sofa", {})] * 3
    del rows
    assert not endless.closed
