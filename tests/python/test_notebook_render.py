"""Results shown to people, through Python: the table of cases, and Python's own."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import nbformat as untyped_nbformat
import pytest
from isolane import notebook as module
from isolane.notebook import (
    Notebook,
    Update,
    render_call,
    render_html,
    render_terminal,
    to_ipynb,
)

# Its functions have no types.
nbformat: Any = untyped_nbformat

CASES = Path(__file__).parents[2] / "crates/notebook/tests/cases/render.json"

cases: list[dict[str, Any]] = json.loads(CASES.read_text(encoding="utf-8"))

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: "_" + letter.group().lower(), name)


def path_of(misuse: Any) -> Any:
    """The place of a misuse."""
    return misuse.path


@pytest.mark.parametrize("case", cases, ids=[case["name"] for case in cases])
def test_case(case: dict[str, Any]) -> None:
    render = getattr(module, snake(case["function"]))
    options = {snake(key): value for key, value in case.get("options", {}).items()}
    if "misuse" in case:
        with pytest.raises((TypeError, ValueError)) as raised:
            render(case["given"], **options)
        assert str(raised.value) == case["misuse"]
        assert case["misuse"].startswith(path_of(raised.value))
        return
    text = render(case["given"], **options)
    if "text" in case:
        assert text == "\n".join(case["text"])
    if "main" in case:
        main = re.search(r"<main>\n(.*)\n</main>", text, re.DOTALL)
        assert main is not None
        assert main[1] == "\n".join(case["main"])
    assert [part for part in case.get("has", []) if part not in text] == []
    assert [part for part in case.get("lacks", []) if part in text] == []


def shown(*outputs: dict[str, Any], language: str = "js", code: str = "") -> dict[str, Any]:
    cell = {"language": language, "code": code, "status": "complete", "outputs": list(outputs)}
    return {"details": {"cells": [cell]}}


CELLS = [
    {
        "language": "js",
        "title": "one",
        "code": "console.error('warned'); display({ type: 'markdown', text: '*m*' },"
        f" {{ type: 'image', data: '{PNG}', mimeType: 'image/png' }}, {{ big: [1, 2.5, null] }});",
    },
    {"language": "js", "code": "null.x"},
    {"language": "js", "code": "3"},
]


def test_a_result_is_shown_as_it_came_and_by_way_of_json() -> None:
    updates: list[Update] = []
    with Notebook() as notebook:
        result = notebook.execute_sync({"cells": CELLS}, on_update=updates.append)
    page = render_html(result)
    for part in ("<em>m</em>", '<img alt="Image of cell 1"', "warned", "TypeError", "1 not run"):
        assert part in page
    copy = json.loads(json.dumps({"content": result.content, "details": result.details}))
    assert render_html(copy) == page
    assert render_terminal(copy) == render_terminal(result)
    assert to_ipynb((copy,)) == to_ipynb([result])
    assert "✗ [2/3] · JavaScript · error" in render_terminal(updates[-1], color="never")
    colors = render_terminal(result, color="always")
    assert re.sub(r"\x1b\[\d+m", "", colors) == render_terminal(result, color="never")


def test_renderers_need_no_loop_and_outlive_one() -> None:
    async def render() -> str:
        return render_terminal(shown(), color="never")

    texts = [asyncio.run(render()), asyncio.run(render()), render_terminal(shown(), color="never")]
    assert texts == ["✓ JavaScript · complete · 0 ms"] * 3


def test_texts_of_any_kind_are_shown() -> None:
    value = {"\udc00": "\ud800", "n": 2**60, "nan": float("nan")}
    torn = shown({"type": "text", "text": "a\ud800b"}, {"type": "json", "value": value})
    lines = render_terminal(torn, color="never").split("\n")[1:]
    expected = ["a\ufffdb", '{"\ufffd":"\ufffd","n":1152921504606846976,"nan":null}']
    assert lines == expected
    render_html(torn).encode()
    to_ipynb([torn]).encode()


def test_a_value_that_nests_too_deeply_to_be_a_result_is_misuse() -> None:
    value: Any = 1
    for _ in range(10_000):
        value = [value]
    renderers: list[Any] = [render_html, render_terminal, lambda result: to_ipynb([result])]
    for render in renderers:
        with pytest.raises(ValueError, match="nests too deeply"):
            render(shown({"type": "json", "value": value}))


@pytest.mark.parametrize(
    ("render", "path"),
    [
        (lambda: render_html(None), "result"),
        (lambda: render_html({"details": {"cells": [print]}}), "details.cells[0]"),
        (lambda: render_html(shown(), preview_lines="x"), "preview_lines"),  # type: ignore[arg-type]
        (lambda: render_call({}), "cells"),
        (lambda: to_ipynb("x"), "results"),
        (lambda: to_ipynb([7]), "results[0]"),
    ],
)
def test_misuse_has_a_path(render: Any, path: str) -> None:
    with pytest.raises((TypeError, ValueError)) as raised:
        render()
    assert path_of(raised.value) == path
    assert str(raised.value).startswith(path)


def test_jupyter_reads_the_notebook(tmp_path: Path) -> None:
    hostile = "</script><img onerror=alert(1)>\x1b]0;x\x07\u202e\ud800"
    deep: Any = 1
    for _ in range(120):
        deep = [deep]
    outputs: list[dict[str, Any]] = [
        {"type": "stream", "name": "stdout", "text": hostile},
        {"type": "text", "text": hostile},
        {"type": "markdown", "text": hostile},
        {"type": "json", "value": {hostile: [1, None, hostile, deep]}},
        {"type": "image", "data": PNG, "mimeType": "image/png"},
        {"type": "image", "data": "PHN2Zy8+", "mimeType": "image/svg+xml"},
        {"type": "image", "data": "PHNjcmlwdD4=", "mimeType": "text/html"},
        {"type": "error", "name": hostile, "message": hostile},
    ]
    with Notebook() as notebook:
        real = notebook.execute_sync({"cells": CELLS})
    error = {"name": hostile, "message": hostile, "stack": hostile + "\nat f"}
    made = shown(*outputs, language="py", code="a\nb")
    made["details"]["cells"][0] |= {"status": "error", "title": hostile, "error": error}
    cut = {
        "window": "tail",
        "total_bytes": 9,
        "total_lines": 9,
        "shown_bytes": 1,
        "shown_lines": 1,
    }
    made["details"] |= {"notice": hostile, "meta": {"truncation": cut}}
    file = tmp_path / "a.ipynb"
    file.write_text(to_ipynb([real, made]), encoding="utf-8")
    read = nbformat.read(file, as_version=nbformat.NO_CONVERT)
    nbformat.validate(read)
    assert (read.nbformat, read.nbformat_minor) == (4, 5)
    assert [cell.id for cell in read.cells if cell.cell_type == "code"] == [
        "cell-1",
        "cell-2",
        "cell-3",
        "cell-4",
    ]
    kinds = [output.output_type for output in read.cells[-1].outputs]
    assert kinds == ["stream", "stream", *["display_data"] * 6, "error", "stream"]
    data = [set(output.data) for output in read.cells[-1].outputs if "data" in output]
    assert data == [
        {"text/plain"},
        {"text/markdown"},
        {"application/json", "text/plain"},
        {"image/png"},
        {"image/svg+xml"},
        {"text/plain"},
    ]
    assert read.cells[-1].source == "a\nb"
    assert read.cells[-1].outputs[-2].traceback[-1] == "at f"
    # Jupyter writes it as it was.
    nbformat.write(read, tmp_path / "b.ipynb")
    assert nbformat.read(tmp_path / "b.ipynb", as_version=nbformat.NO_CONVERT) == read
    nbformat.validate(nbformat.reads(to_ipynb([]), as_version=4))
