"""The CloudFormation template as CloudFormation reads it: loops unrolled, and parameters at their defaults."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cfnlint.decode import decode
from cfnlint.template import Template

ROOT = Path(__file__).parent.parent.parent
PATH = ROOT / "deploy" / "service.yaml"


def read_template() -> dict[str, Any]:
    """Raises where a loop can't be unrolled."""
    decoded, problems = decode(str(PATH))
    assert problems == []
    template = Template(str(PATH), decoded, ["us-east-1"])
    assert template.transform() == []
    read: dict[str, Any] = json.loads(json.dumps(template.template))
    return read


class Resources:
    def __init__(self, template: dict[str, Any]) -> None:
        self._template = template
        self._resources: dict[str, dict[str, Any]] = template["Resources"]

    def properties(self, name: str) -> dict[str, Any]:
        resolved: dict[str, Any] = self._resolve(self._resources[name]["Properties"])
        return resolved

    def of_type(self, *types: str) -> dict[str, dict[str, Any]]:
        return {name: self.properties(name) for name, each in self._resources.items() if each["Type"] in types}

    @property
    def alarms(self) -> dict[str, dict[str, Any]]:
        return self.of_type("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")

    def _resolve(self, value: Any) -> Any:
        """With the default where a parameter with one is referred to; numbers as such."""
        if isinstance(value, list):
            return [self._resolve(each) for each in value]
        if not isinstance(value, dict):
            return value
        if set(value) == {"Ref"}:
            parameter = self._template["Parameters"].get(value["Ref"], {})
            return parameter.get("Default", value)
        return {name: self._resolve(each) for name, each in value.items()}


def sections(markdown: str) -> dict[str, str]:
    """The text under each heading, up to the next one of any level."""
    parts = re.split(r"^#+ (.+)$", markdown, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))
