"""What a run may be given. Checks are the core's; these are the shapes for a type checker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, TypeAlias, TypedDict

Language: TypeAlias = Literal["javascript", "typescript"]
"""The language of the sources. Types are erased, not checked."""


class Execute(TypedDict, total=False):
    """Which export is the result, and what it is called with."""

    fn: str
    """The name of the export; `default` when absent."""
    args: Sequence[Any]
    """The arguments, if it is a function; they are cloned. None when absent."""


Imports: TypeAlias = Mapping[str, Mapping[str, Any]]
Modules: TypeAlias = Mapping[str, str]
Globals: TypeAlias = Mapping[str, Any]
Report: TypeAlias = Callable[[Any], Any]
