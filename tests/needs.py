"""What not every environment that the tests run in has: Inferentia 1's frozen stack has neither."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

OPENVINO = pytest.mark.skipif(find_spec("openvino") is None, reason="the shipped bundle's target needs OpenVINO")
MATPLOTLIB = pytest.mark.skipif(find_spec("matplotlib") is None, reason="pictures need matplotlib")
