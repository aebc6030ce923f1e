"""Tests of the Python runner's comparison: it must see every difference that Python can see.

In: values and tagged JSON that are the same, or nearly so. Out: a test for each pair.
"""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from isolane import undefined

from compare_python import mismatch, mismatch_of_some
from parse import Json, MalformedTableError, cases_of
from tags_python import EPOCH, Values

NAN = float("nan")
SHARED: list[Any] = []
EQUAL: list[list[Any]] = [[], []]


@pytest.mark.parametrize(
    ("actual", "json"),
    [
        (None, None),
        (None, {"$undefined": True}),
        (1, 1),
        (1, 1.0),
        (1.5, 1.5),
        (-0.0, -0.0),
        (-0.0, {"$number": "-0"}),
        (NAN, {"$number": "NaN"}),
        (2.0**53, 2**53),
        (2**53 - 1, 2**53 - 1),
        (2**64, {"$bigint": "18446744073709551616"}),
        ("\ud800a", {"$string": [0xD800, 97]}),
        ("xx", {"$repeat": ["x", 2]}),
        ("a.b", {"$match": r"^a\.b$"}),
        (b"\1\2", {"$bytes": [1, 2]}),
        (b"\1\2", {"$buffer": [1, 2]}),
        (b"\2", {"$view": ["DataView", 1, 1, [1, 2]]}),
        (b"\2", {"$view": ["Uint8ClampedArray", 1, 1, [1, 2]]}),
        (memoryview(b"\1\0").cast("h"), {"$view": ["Int16Array", 0, 1, [1, 0]]}),
        (EPOCH, {"$date": 0}),
        ({"a": 1}, {"a": 1, "b": {"$absent": True}}),
        ({"a": 1}, {"$map": [["a", 1]]}),
        ({1: "a"}, {"$map": [[1, "a"]]}),
        ({3, "a"}, {"$set": ["a", 3]}),
        ([SHARED, SHARED], [{"$id": "s", "$value": []}, {"$ref": "s"}]),
        (EQUAL, [[], []]),
    ],
)
def test_same(actual: object, json: Json) -> None:
    assert mismatch(actual, json) is None


@pytest.mark.parametrize(
    ("actual", "json"),
    [
        (True, 1),
        (1, True),
        (1.0, 1),
        (0, {"$number": "-0"}),
        (0.0, {"$number": "-0"}),
        (-0.0, 0),
        (2**53, 2**53),
        (5.0, {"$bigint": "5"}),
        (undefined, {"$undefined": True}),
        (undefined, None),
        (0, None),
        ("1", 1),
        ("x\n", {"$match": "^x$"}),
        ("\u0661", {"$match": r"\d"}),
        (b"\1", {"$match": "."}),
        (bytearray(b"\1"), {"$bytes": [1]}),
        (memoryview(b"\1"), {"$bytes": [1]}),
        (b"\1", {"$view": ["Int8Array", 0, 1, [1]]}),
        (memoryview(b"\1\0").cast("H"), {"$view": ["Int16Array", 0, 1, [1, 0]]}),
        (memoryview(b"\1\0\2\0").cast("h"), {"$view": ["Int16Array", 0, 1, [1, 0]]}),
        (datetime(1970, 1, 1), {"$date": 0}),
        (EPOCH.astimezone(timezone(timedelta(hours=1))), {"$date": 0}),
        ((1,), [1]),
        ([1], [1, 2]),
        ({"b": 1, "a": 2}, {"a": 2, "b": 1}),
        ({"a": 1, "b": 2}, {"a": 1}),
        ({"a": 1}, {"a": {"$absent": True}}),
        ({1: "a"}, {"$map": [[1.5, "a"]]}),
        ({True: "a"}, {"$map": [[1, "a"]]}),
        ({"1": "a"}, {"$map": [[1, "a"]]}),
        ({1, 2}, {"$set": [1]}),
        ({True}, {"$set": [1]}),
        (frozenset({1}), {"$set": [1]}),
        (ValueError("x"), {"$error": {"class": "Error", "message": "x"}}),
        ([SHARED, SHARED], [[], []]),
        (EQUAL, [{"$id": "s", "$value": []}, {"$ref": "s"}]),
    ],
)
def test_different(actual: object, json: Json) -> None:
    assert mismatch(actual, json) is not None


def test_only_the_keys_of_the_case_are_compared() -> None:
    assert mismatch_of_some({"a": 1, "b": 2}, {"a": 1, "c": {"$absent": True}}, "o") is None
    assert mismatch_of_some({"a": 1}, {"b": {"$any": True}}, "o") == "o.b is not there"
    assert mismatch_of_some({"a": None}, {"a": {"$absent": True}}, "o") == "o.a is there: None"


def test_a_value_may_hold_itself() -> None:
    json = {"$id": "n", "$value": {"list": [{"$ref": "n"}]}}
    node = Values({}).untag(json)
    assert node["list"][0] is node
    assert mismatch(node, json) is None


@pytest.mark.parametrize(
    "text",
    [
        "## a\nrule\n```js\n```",
        "## a\n```js\n```\n```json result\n{}\n```",
        "## a\nrule\n```json result\n{}\n```",
        "## a\nrule\n```js\n```\n```json result\n{}\n```\n```json misuse\n{}\n```",
        "## a\nrule\n```js\n```\n```json result\nNaN\n```",
        "## a\nrule\nskip: perl (no)\n```js\n```\n```json result\n{}\n```",
        "```js\n```",
        "## a\nrule\n```js\n1",
    ],
)
def test_a_table_that_is_no_table(text: str) -> None:
    with pytest.raises(MalformedTableError):
        cases_of("x.md", text)
