"""Settings of the machine that runs the tests are none of theirs."""

from __future__ import annotations

import os

import pytest

from app.settings import PREFIX


@pytest.fixture(autouse=True)
def no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith((PREFIX, "NEURON_")):
            monkeypatch.delenv(name)
