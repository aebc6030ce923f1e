"""Values of JavaScript expressions, with which these tests look into a sandbox.

In: an expression, and globals for it. Out: its value in Python, or the text of its refusal.
"""

from __future__ import annotations

from typing import Any

import isolane


def evaluate(expression: str, **globals: Any) -> isolane.CodeExecutionResult:
    """The result of an expression."""
    return isolane.run_code_sync(f"export default ({expression});", globals=globals)


def value_of(expression: str, **globals: Any) -> Any:
    return evaluate(expression, **globals).raise_for_status().result


def refusal_of(expression: str, **globals: Any) -> str:
    """The message of the SerializationError that a result ends with."""
    result = evaluate(expression, **globals)
    assert result.status == "error", result
    assert result.error is not None
    assert result.error.name == "SerializationError"
    return result.error.message


def assert_exactly(got: object, expected: object) -> None:
    """Equal including the types and the order: different values have different texts."""
    assert repr(got) == repr(expected)
    assert type(got) is type(expected)
