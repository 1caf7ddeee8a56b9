"""Conversion of parameter values between Python and their recorded form."""

from __future__ import annotations

import json
import math
from enum import Enum
from typing import Any, Iterable, Mapping

_TUPLE = "__tuple__"  # JSON has no tuples: (1, 2) is recorded as {"__tuple__": [1, 2]}


def scalar(value: Any) -> Any:
    """Returns a numpy scalar, or an array or tensor without dimensions, as a Python value; others unchanged."""
    if callable(getattr(value, "item", None)) and getattr(value, "ndim", 0) == 0:
        return value.item()
    return value


def encoded(value: Any, name: str) -> Any:
    """Returns the value of the parameter `name` as JSON, from which decoded() makes an equal value of the same type.
    Raises TypeError or ValueError if that is impossible."""
    if not isinstance(value, (str, int, float)):
        value = scalar(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        raise TypeError(f"{name}: {value!r} cannot be recorded; use its name, and look up the member in the objective")
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int):
        if not -2 ** 63 <= value < 2 ** 63:
            raise ValueError(f"{name}: {value} has more than 64 bits and cannot be recorded; use text")
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{name}: {value} is not a finite number")
        return float(value)
    if type(value) in (list, tuple):
        items = [encoded(item, name) for item in value]
        return items if type(value) is list else {_TUPLE: items}
    if isinstance(value, dict):
        if not all(type(key) is str for key in value) or _TUPLE in value:
            raise TypeError(f"{name}: {value!r} cannot be recorded; the keys of a dict have to be text")
        return {key: encoded(item, name) for key, item in value.items()}
    raise TypeError(f"{name}: {value!r} of type {type(value).__name__} cannot be recorded; use a name, and look up the "
                    "object in the objective")


def decoded(value: Any) -> Any:
    """Returns the Python value for JSON that encoded() made."""
    if isinstance(value, list):
        return [decoded(item) for item in value]
    if isinstance(value, dict):
        if list(value) == [_TUPLE]:
            return tuple(decoded(item) for item in value[_TUPLE])
        return {key: decoded(item) for key, item in value.items()}
    return value


def encoded_choices(choices: Iterable[Any], name: str) -> list[Any]:
    if isinstance(choices, (set, frozenset)):
        raise TypeError(f"{name}: a set has no order; use a list")
    each = [encoded(choice, name) for choice in choices]
    texts = [text(choice) for choice in each]
    if len(set(texts)) < len(texts):
        raise ValueError(f"{name}: two of the choices have the same text: {', '.join(texts)}")
    return each


def encoded_bound(value: Any, name: str) -> float:
    number = encoded(value, name)
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise TypeError(f"{name}: expected a number as a bound, got {value!r}")
    return number


def encoded_space(space: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a space as the `params` of an experiment file."""
    def one_or_more(values: Any, name: str) -> Any:
        return encoded_choices(values, name) if _is_list(values) else [encoded(values, name)]

    document: dict[str, Any] = {}
    for name, spec in space.items():
        if not isinstance(spec, Mapping):
            document[name] = one_or_more(spec, name)
            continue
        document[name] = each = {}
        for key, value in spec.items():
            if key == "choices":
                each[key] = one_or_more(value, name)
            elif key == "when" and isinstance(value, Mapping):
                each[key] = {other: one_or_more(values, other) for other, values in value.items()}
            else:
                each[key] = encoded(value, name)
    return document


def _is_list(value: Any) -> bool:
    return not isinstance(value, (str, bytes, Mapping)) and hasattr(value, "__iter__") and getattr(value, "ndim", 1) > 0


def text(value: Any) -> str:
    """Returns an encoded value as text for a command line."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
