"""What a person reads, and the document to send back."""

from __future__ import annotations

from app.tools.doctor.check import failed, ok, warning
from app.tools.doctor.report import document, lines, verdict

WELL = ok("driver", "2.24.7.0", version="2.24.7.0")
WRONG = failed("canary", "1 of 2\ncore 1: wrong", "replace the host")


def test_a_check_is_its_verdict_its_name_and_what_to_do() -> None:
    first, second, remedy = lines(WRONG).splitlines()
    assert first.split() == ["failed", "canary", "1", "of", "2"]
    assert second.strip() == "core 1: wrong"
    assert remedy.strip() == "→ replace the host"
    assert len(second) - len(second.lstrip()) == first.index("1 of 2")


def test_long_lines_are_broken_and_tables_are_not() -> None:
    table = "tokens        8       16"
    said = lines(ok("latency", f"{'word ' * 40}\n{table}")).splitlines()
    assert max(map(len, said)) <= 120
    assert said[-1].endswith(table)


def test_the_verdict_names_what_is_wrong_and_what_to_look_at() -> None:
    look = warning("pins", "numpy", "install")
    assert verdict([WELL], "inf1") == "WELL: target inf1"
    assert verdict([WELL, look], "inf1") == "WELL: target inf1; look at pins"
    assert verdict([WELL, look, WRONG], None) == "NOT WELL: canary; look at pins"


def test_the_document_holds_all_of_it_and_of_the_environment_only_what_steers_us() -> None:
    environ = {"NEURON_RT_VISIBLE_CORES": "0-3", "QUERY_INTENT_SLO_MS": "9", "AWS_SECRET_ACCESS_KEY": "secret"}
    found = document([WELL, WRONG], "inf1", environ, {"cores": 16})
    assert (found["well"], found["target"], found["asked"]) == (False, "inf1", {"cores": 16})
    assert found["checks"][0] == {
        "name": "driver",
        "verdict": "ok",
        "detail": "2.24.7.0",
        "data": {"version": "2.24.7.0"},
    }
    assert found["checks"][1]["remedy"] == "replace the host"
    assert set(found["environment"]) == {"NEURON_RT_VISIBLE_CORES", "QUERY_INTENT_SLO_MS"}
    assert "numpy" in found["packages"]
