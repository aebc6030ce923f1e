"""The options that the signatures promise are those that the core declares."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest
from isolane import Execute, _isolane

# From where they are defined: tests of processes put others into the package's names.
from isolane._runtime import Runtime, run_code, run_code_sync
from isolane._session import Session


def keywords(function: Callable[..., Any]) -> list[str]:
    """The names of the options that a function takes, without the hook that only Python has."""
    parameters = inspect.signature(function).parameters.values()
    names = (each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
    return sorted(name for name in names if name != "default")


@pytest.mark.parametrize(
    "function",
    [run_code, run_code_sync, Runtime.run_code, Runtime.run_code_sync],
)
def test_the_options_of_a_run(function: Callable[..., Any]) -> None:
    assert keywords(function) == sorted(_isolane.option_names("run"))


def test_the_options_of_a_runtime() -> None:
    assert keywords(Runtime) == sorted(_isolane.option_names("runtime"))


@pytest.mark.parametrize("function", [Session, Runtime.session])
def test_the_options_of_a_session(function: Callable[..., Any]) -> None:
    assert keywords(function) == sorted(_isolane.option_names("session"))


@pytest.mark.parametrize(
    ("functions", "options"),
    [
        ((Session.run, Session.run_sync), "cell"),
        ((Session.call, Session.call_sync), "call"),
        ((Session.update,), "update"),
    ],
)
def test_the_options_of_a_cell(functions: list[Callable[..., Any]], options: str) -> None:
    # A task is cancelled where Node aborts a signal, and a name is no keyword.
    declared = set(_isolane.option_names(options)) - {"signal", "name"}
    for function in functions:
        assert keywords(function) == sorted(declared)


def test_the_fields_of_execute() -> None:
    assert sorted(get_type_hints(Execute)) == sorted(_isolane.option_names("execute"))
