"""The reader of the contract tables for Python.

In: a folder of tables. Out: its cases, checked for form, not yet decoded (tags stay tags).
README.md has the format; a violation raises with file and line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

LANGUAGES = {"ts": "typescript", "js": "javascript"}
JSON_FENCES = ("options", "handle", "result", "misuse")
SKIP = re.compile(r"skip: (node|python|rust) \((.+)\)")
ESCAPED = re.compile("⟦u([0-9A-Fa-f]+)⟧")

# The result of `json.loads`.
Json: TypeAlias = Any


@dataclass(frozen=True)
class Case:
    """One case, with either `result` or `misuse`."""

    file: str
    heading: str
    line: int
    skip: dict[str, str]
    language: str
    source: str
    modules: dict[str, str]
    options: dict[str, Json]
    handle: list[Json]
    result: dict[str, Json] | None
    misuse: dict[str, Json] | None


class MalformedTableError(Exception):
    """A table that violates the format."""


def cases(folder: Path) -> list[Case]:
    """All cases in `folder`, in the order of file names and of headings."""
    tables = sorted(path for path in folder.glob("*.md") if path.name != "README.md")
    return [
        case for path in tables for case in cases_of(path.name, path.read_bytes().decode("utf-8"))
    ]


def cases_of(file: str, text: str) -> list[Case]:
    """The cases of one table, given as text."""
    drafts: list[_Draft] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("## "):
            draft = _Draft(file, line[3:].strip(), at + 1)
            if any(other.heading == draft.heading for other in drafts):
                draft.fail("is there twice")
            drafts.append(draft)
        elif line.startswith("```"):
            if not drafts or "```" not in lines[at + 1 :]:
                why = "a fence outside of a case or without an end"
                raise MalformedTableError(f"{file}:{at + 1}: {why}")
            end = lines.index("```", at + 1)
            drafts[-1].add_fence(line[3:].strip(), "\n".join(lines[at + 1 : end]))
            at = end
        elif drafts:
            drafts[-1].add_prose(line)
        at += 1
    return [draft.case() for draft in drafts]


@dataclass
class _Draft:
    """A case while it is read."""

    file: str
    heading: str
    line: int
    prose: bool = False
    skip: dict[str, str] = field(default_factory=dict)
    entry: tuple[str, str] | None = None
    modules: dict[str, str] = field(default_factory=dict)
    said: dict[str, Json] = field(default_factory=dict)

    def add_fence(self, info: str, text: str) -> None:
        match info.split(" "):
            case [kind] if kind in LANGUAGES:
                if self.entry is not None:
                    self.fail("has a second entry")
                self.entry = (LANGUAGES[kind], _unescape(text))
            case [kind, name] if kind in LANGUAGES:
                if name in self.modules:
                    self.fail(f"has a second module '{name}'")
                self.modules[name] = _unescape(text)
            case ["json", name] if name in JSON_FENCES:
                if name in self.said:
                    self.fail(f"has a second {name}")
                self.said[name] = _read_json(text, self.fail)
            case _:
                self.fail(f"has an unknown fence '{info}'")

    def add_prose(self, line: str) -> None:
        if skip := SKIP.fullmatch(line):
            self.skip[skip[1]] = skip[2]
        elif line.startswith("skip:"):
            self.fail("has a skip line that is not `skip: language (reason)`")
        elif line.strip():
            self.prose = True

    def case(self) -> Case:
        if self.entry is None:
            self.fail("has no entry")
        if not self.prose:
            self.fail("gives no rule")
        if ("result" in self.said) == ("misuse" in self.said):
            self.fail("has to have either a result or a misuse")
        options = self.said.get("options", {})
        handle = self.said.get("handle", [])
        if not isinstance(options, dict) or not isinstance(handle, list):
            self.fail("has options that are no object or handle steps that are no list")
        return Case(
            self.file,
            self.heading,
            self.line,
            self.skip,
            *self.entry,
            self.modules,
            options,
            handle,
            self.said.get("result"),
            self.said.get("misuse"),
        )

    def fail(self, why: str) -> NoReturn:
        raise MalformedTableError(f"{self.file}:{self.line}: '{self.heading}' {why}")


def _read_json(text: str, fail: Callable[[str], NoReturn]) -> Json:
    """JSON as JavaScript reads it: `-0` keeps its sign, and there is no NaN."""
    try:
        return json.loads(
            text,
            parse_int=lambda digits: -0.0 if digits == "-0" else int(digits),
            parse_constant=lambda name: fail(f"says {name}, which is not JSON"),
        )
    except json.JSONDecodeError as error:
        fail(str(error))


def _unescape(source: str) -> str:
    """`⟦uD800⟧` stands for that code unit or character."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), source)
