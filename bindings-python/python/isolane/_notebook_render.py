"""Results for people: functions of a result, which need no open notebook.

In: results of `execute`, or the arguments of a call, and options. Out: texts. The native side reads
and checks everything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Literal

from ._door import Door
from ._notebook_misuse import paths


def render_call(
    args: Mapping[str, Any],
    *,
    width: int | None = None,
    color: Literal["auto", "always", "never"] | None = None,
    expanded: bool | None = None,
    preview_lines: int | None = None,
    title: str | None = None,
) -> str:
    """The cells of a call before it runs, for a terminal.

    Args:
        args: The argument object of the model's tool call.
        width, color, expanded, preview_lines, title: As of `render_terminal`.

    Raises:
        TypeError, ValueError: misuse, whose place `path` names.
    """
    return _asked(
        "render_call",
        args,
        {
            "width": width,
            "color": color,
            "expanded": expanded,
            "preview_lines": preview_lines,
            "title": title,
        },
    )


def render_terminal(
    result: Any,
    *,
    width: int | None = None,
    color: Literal["auto", "always", "never"] | None = None,
    expanded: bool | None = None,
    preview_lines: int | None = None,
    title: str | None = None,
) -> str:
    """A result for a terminal. No text of a cell has an escape sequence.

    Args:
        result: A `CallResult`, an `Update`, or a mapping with the same keys, such as one of JSON.
            Only `details` with its `cells` is needed.
        width: The columns of a line, 20 to 10,000. 80 by default.
        color: Whether there are colours. By default "auto": if the standard output is a terminal,
            and `NO_COLOR` is not set.
        expanded: Whether long texts are shown whole.
        preview_lines: The lines of a longer text that are shown: the first of a code, the last of
            an output. 10 by default.
        title: A line above all.

    Raises:
        TypeError, ValueError: misuse, whose place `path` names.
    """
    return _asked(
        "render_terminal",
        _plain(result),
        {
            "width": width,
            "color": color,
            "expanded": expanded,
            "preview_lines": preview_lines,
            "title": title,
        },
    )


def render_html(
    result: Any,
    *,
    title: str | None = None,
    theme: Literal["auto", "light", "dark"] | None = None,
    expanded: bool | None = None,
    preview_lines: int | None = None,
) -> str:
    """A result as a page of HTML: one file without scripts, which loads nothing. Nothing of a cell
    is markup.

    Args:
        result: As of `render_terminal`.
        title: The title of the page, "Notebook" by default.
        theme: Its colours. By default "auto": as the reader's system has it.
        expanded: Whether long texts and values are open from the start.
        preview_lines: The lines of a longer text that show while it is folded. 10 by default.

    Raises:
        TypeError, ValueError: misuse, whose place `path` names.
    """
    options = {
        "title": title,
        "theme": theme,
        "expanded": expanded,
        "preview_lines": preview_lines,
    }
    return _asked("render_html", _plain(result), options)


def to_ipynb(results: Iterable[Any]) -> str:
    """Results in order as the text of a notebook of Jupyter (nbformat 4.5): of Python if any cell
    is, else of TypeScript.

    Args:
        results: Results as of `render_terminal`.

    Raises:
        TypeError, ValueError: misuse, whose place `path` names.
    """
    is_list = isinstance(results, (list, tuple))
    return _asked("to_ipynb", [_plain(result) for result in results] if is_list else results)


def _asked(method: str, *args: Any) -> str:
    with paths():
        text: str = _renderers().ask(method, *args)
    return text


@cache
def _renderers() -> Door:
    return Door("notebook-renderers", {})


def _plain(result: Any) -> Any:
    """The fields of a result; anything else as it is."""
    if not is_dataclass(result) or isinstance(result, type):
        return result
    return {field.name: getattr(result, field.name) for field in fields(result)}
