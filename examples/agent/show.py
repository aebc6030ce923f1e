"""Output of the demo: headings, reports as they come, a table, and failed runs.

A failed run is shown as the author of its code would want to see it. Control characters of the
sandbox's texts are replaced, because a terminal obeys them.
"""

from __future__ import annotations

import unicodedata
from typing import Any

from isolane import CodeExecutionLog, CodeExecutionResult

TAB = 4
FRAMES = 5


def heading(text: str) -> None:
    print(f"\n{text}")


def note(text: str) -> None:
    print(f"  {text}")


def report(elapsed_s: float, value: dict[str, Any]) -> None:
    """One report, with the milliseconds since the run began."""
    fields = "  ".join(f"{key} {shown(field)}" for key, field in value.items() if key != "step")
    print(f"  +{elapsed_s * 1000:4.0f} ms  {harmless(value['step']):<10}{fields}")


def logs(entries: list[CodeExecutionLog]) -> None:
    for entry in entries:
        args = " ".join(harmless(arg) if isinstance(arg, str) else repr(arg) for arg in entry.args)
        print(f"  {entry.level:<6}{args}".replace("\n", "\n        "))


def table(rows: list[dict[str, Any]], columns: dict[str, str]) -> None:
    """Rows as a table; a column has a heading and the key of its cells. Numbers are aligned
    right."""
    cells = [[shown(row[key]) for key in columns.values()] for row in rows]
    right = [all(isinstance(row[key], (int, float)) for row in rows) for key in columns.values()]
    widths = [max(map(cells_of, column)) for column in zip(columns, *cells, strict=True)]
    for line in [list(columns), *cells]:
        padded = [
            " " * (wide - cells_of(text)) + text if number else text + " " * (wide - cells_of(text))
            for text, wide, number in zip(line, widths, right, strict=True)
        ]
        print(f"  {'  '.join(padded).rstrip()}")


def cost(result: CodeExecutionResult) -> None:
    """The time and memory of a run."""
    used = result.memory_used_bytes
    memory = "" if used is None else f", {used / 2**20:.1f} MiB at its peak"
    print(f"  {result.duration_ms:.1f} ms{memory}")


def failure(result: CodeExecutionResult, sources: dict[str, str]) -> None:
    """A run that did not succeed: the error, the line with a caret below the place, and the
    frames."""
    error = result.error
    if error is None:
        return
    place = "" if error.line is None else f"  {error.filename}:{error.line}:{error.column}"
    print(f"  {result.status}  {harmless(error.name)}: {harmless(error.message)}{place}")
    if error.filename in sources and error.line is not None and error.column is not None:
        line, caret = underlined(
            harmless(sources[error.filename].split("\n")[error.line - 1]), error.column
        )
        margin = str(error.line)
        print(f"  {margin} | {line}")
        print(f"  {' ' * len(margin)} | {caret}")
    lines = error.stack.split("\n") if error.stack else []
    frames = [line for line in lines if line.startswith("    at ")]
    for frame in frames[:FRAMES]:
        print(f"  {harmless(frame)}")
    if len(frames) > FRAMES:
        print(f"      … {len(frames) - FRAMES} more")
    logs(result.logs)


def verdict(wrong: list[str]) -> None:
    for text in wrong:
        print(f"  NOT AS INTENDED  {text}")
    if not wrong:
        print("  as intended")


def shown(value: Any) -> str:
    """A number with separators between thousands, whole or with two decimals; or else any text."""
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:,.2f}" if isinstance(value, float) else harmless(str(value))


def underlined(text: str, column: int) -> tuple[str, str]:
    """A source line as a terminal shows it, and a line with a caret below its `column` (from 1, in
    UTF-16 units, as in errors). Tabs become blanks; a wide character takes two cells."""
    line, cells, units, caret = "", 0, 0, None
    for char in text:
        if units >= column - 1 and caret is None:
            caret = cells
        units += 2 if ord(char) > 0xFFFF else 1
        blanks = TAB - cells % TAB if char == "\t" else 0
        line += " " * blanks or char
        cells += blanks or width(char)
    return line, " " * (cells if caret is None else caret) + "^"


def cells_of(text: str) -> int:
    """The number of a terminal's cells that a text takes."""
    return sum(map(width, text))


def width(char: str) -> int:
    """The number of a terminal's cells that a character takes."""
    if unicodedata.combining(char) or unicodedata.category(char) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def harmless(text: str) -> str:
    """A text of the sandbox with each control character except tab and line break replaced."""
    return "".join(
        "\ufffd" if unicodedata.category(c) == "Cc" and c not in "\t\n" else c for c in text
    )
