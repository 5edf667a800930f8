"""The Dockerfile read as far as its promises need it: stages, and the instructions of each."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


@dataclass(slots=True)
class Stage:
    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def all(self, instruction: str) -> list[str]:
        """The arguments of each such instruction, in order."""
        return [arguments for name, arguments in self.instructions if name == instruction]

    def only(self, instruction: str) -> str:
        (arguments,) = self.all(instruction)
        return arguments

    def pairs(self, instruction: str) -> dict[str, str]:
        """Of ENV and LABEL."""
        words = (word for arguments in self.all(instruction) for word in shlex.split(arguments))
        return {name: value for name, _, value in (word.partition("=") for word in words)}

    def exec_form(self, instruction: str) -> list[str]:
        """The words of a command that no shell runs; raises ``ValueError`` where one would."""
        words: list[str] = json.loads(self.only(instruction))
        return words


def read_stages() -> list[Stage]:
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)
    stages: list[Stage] = []
    for line in text.replace("\\\n", " ").splitlines():
        if not line.strip():
            continue
        instruction, arguments = line.split(maxsplit=1)
        if instruction == "FROM":
            base, _, name = arguments.partition(" AS ")
            stages.append(Stage(name, base))
        else:
            stages[-1].instructions.append((instruction, arguments.strip()))
    return stages
