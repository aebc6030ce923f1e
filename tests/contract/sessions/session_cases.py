"""The reader of the contract table of sessions for Python.

In: a folder of tables. Out: its cases, not yet decoded (tags stay tags): the options of the session
and a list of acts in their order. README.md has the format; a violation raises with file and line.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

LANGUAGES = {"ts": "typescript", "js": "javascript"}
SKIP = re.compile(r"skip: (node|python|rust) \((.+)\)")
ESCAPED = re.compile("⟦u([0-9A-Fa-f]+)⟧")

# The result of `json.loads`.
Json: TypeAlias = Any


@dataclass
class Cell:
    """A source to run, or a call, and its result if it is awaited at once."""

    source: str | None
    language: str
    options: dict[str, Json]
    called: Json = None
    args: list[Json] = field(default_factory=list)
    result: dict[str, Json] | None = None
    misuse: dict[str, Json] | None = None


@dataclass
class Steps:
    """Acts of the host."""

    steps: list[dict[str, Json]]


@dataclass
class Result:
    """The result of the cell with that name."""

    of: str
    result: dict[str, Json]


Act: TypeAlias = Cell | Steps | Result


@dataclass
class Case:
    """One case; with `misuse` its session does not open."""

    file: str
    heading: str
    line: int
    skip: dict[str, str] = field(default_factory=dict)
    options: dict[str, Json] = field(default_factory=dict)
    runtime: dict[str, Json] | None = None
    modules: dict[str, str] = field(default_factory=dict)
    misuse: dict[str, Json] | None = None
    acts: list[Act] = field(default_factory=list)

    def fail(self, why: str) -> NoReturn:
        raise MalformedTableError(f"{self.file}:{self.line}: '{self.heading}' {why}")


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
    found: list[Case] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("## "):
            found.append(Case(file, line[3:].strip(), at + 1))
        elif line.startswith("```"):
            if not found or "```" not in lines[at + 1 :]:
                why = "a fence outside of a case or without an end"
                raise MalformedTableError(f"{file}:{at + 1}: {why}")
            end = lines.index("```", at + 1)
            _add_fence(found[-1], line[3:].strip(), "\n".join(lines[at + 1 : end]))
            at = end
        elif found and (skip := SKIP.fullmatch(line)):
            found[-1].skip[skip[1]] = skip[2]
        at += 1
    return found


def _add_fence(case: Case, info: str, text: str) -> None:
    match info.split(" "):
        case [kind] if kind in LANGUAGES:
            case.acts.append(Cell(_unescape(text), LANGUAGES[kind], {}))
        case [kind, name] if kind in LANGUAGES:
            case.modules[name] = _unescape(text)
        case ["json", "options"]:
            case.options = _read_json(case, text)
        case ["json", "runtime"]:
            case.runtime = _read_json(case, text)
        case ["json", "call"]:
            options = _read_json(case, text)
            called, args = options.pop("name"), options.pop("args", [])
            case.acts.append(Cell(None, "typescript", options, called, args))
        case ["json", "steps"]:
            case.acts.append(Steps(_read_json(case, text)))
        case ["json", "result", of]:
            case.acts.append(Result(of, _read_json(case, text)))
        case ["json", "misuse"] if not case.acts:
            case.misuse = _read_json(case, text)
        case ["json", "cell" | "result" | "misuse" as name]:
            cell = case.acts[-1] if case.acts else None
            if not isinstance(cell, Cell):
                case.fail(f"has a {name} without a cell right before")
            setattr(cell, "options" if name == "cell" else name, _read_json(case, text))
        case _:
            case.fail(f"has an unknown fence '{info}'")


def _read_json(case: Case, text: str) -> Json:
    """JSON as JavaScript reads it: `-0` keeps its sign, and there is no NaN."""
    try:
        return json.loads(
            text,
            parse_int=lambda digits: -0.0 if digits == "-0" else int(digits),
            parse_constant=lambda name: case.fail(f"says {name}, which is not JSON"),
        )
    except json.JSONDecodeError as error:
        case.fail(str(error))


def _unescape(source: str) -> str:
    """`⟦uD800⟧` stands for that code unit or character."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), source)
