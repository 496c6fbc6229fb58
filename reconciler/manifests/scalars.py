"""What a plain YAML scalar means, as kubectl reads it.

kubectl reads YAML with sigs.k8s.io/yaml, that is go-yaml v2, and sends JSON to the API server. So `yes`, `on` and `y` are
booleans, and `017`, `0o17` and `0x1F` are integers. `1e3` is the number 1000 (an integer in JSON), and `12:30` and dates are
strings. PyYAML's own resolver agrees only on the first of these, so the rules are written out here.
"""

from __future__ import annotations

import math
import re

Scalar = str | int | float | bool | None

_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMERIC_START = frozenset("+-.0123456789")
_INTEGER = re.compile(r"([+-]?)(?:(0[xX])([0-9a-fA-F]+)|(0[bB])([01]+)|(0[oO]?)([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])")
_LARGEST_PLAIN = 1e21
"""Go prints floats below this value without an exponent, so a whole one is an integer in JSON."""
_SMALLEST_INTEGER, _LARGEST_INTEGER = -(2**63), 2**64 - 1
"""go-yaml's integers have 64 bits, signed or unsigned. A longer number is a float if it is decimal, otherwise text."""
_MOST_DIGITS = 80
"""More digits than 64 bits have in any base, and few enough for `int` to read quickly."""


def resolve_plain(text: str) -> Scalar:
    """The value of an unquoted scalar without a tag."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _NUMERIC_START:
        return text
    return _number(text)


def resolve_tagged(tag: str, text: str) -> Scalar:
    """The value of a scalar with an explicit tag. With a tag outside the core schema it is the text itself.

    Raises ValueError if the text is not what the tag says.
    """
    match tag.removeprefix("tag:yaml.org,2002:"):
        case "int" | "float" as kind:
            value = _number(text) if text and text[0] in _NUMERIC_START else text
            if isinstance(value, str) or (kind == "int" and _INTEGER.fullmatch(text.replace("_", "")) is None):
                raise ValueError(f"{text!r} is no {kind}")
            return value
        case "bool":
            if isinstance(word := _WORDS.get(text), bool):
                return word
            raise ValueError(f"{text!r} is not a boolean")
        case "null":
            if _WORDS.get(text, text) is not None:
                raise ValueError(f"{text!r} is not null")
            return None
        case _:
            return text


def key_text(value: Scalar) -> str:
    """A mapping key as in JSON: numbers and booleans become text. For None, which cannot be a key, the caller must raise."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _number(text: str) -> Scalar:
    # go-yaml removes every underscore of a number. If the number begins with a point, it removes only those between digits.
    plain = _BETWEEN_DIGITS.sub("", text) if text[0] == "." else text.replace("_", "")
    number = _integer(plain)
    if number is not None:
        return number
    if _FLOAT.fullmatch(plain):
        value = float(plain)
        if value.is_integer() and abs(value) < _LARGEST_PLAIN:
            return int(value)
        return value if math.isfinite(value) else text
    return text


def json_number(text: str) -> Scalar:
    """A number in a JSON text, with the same bounds as in YAML."""
    return _number(text)


def _integer(text: str) -> int | None:
    """A 64-bit integer; None for any other text."""
    match = _INTEGER.fullmatch(text)
    if match is None:
        return None
    sign, bases = match[1], ((match[3], 16), (match[5], 2), (match[7], 8), (match[8], 10))
    digits, base = next((digits.lstrip("0"), base) for digits, base in bases if digits is not None)
    if len(digits) > _MOST_DIGITS:
        return None
    number = int(f"{sign}{digits or 0}", base)
    return number if _SMALLEST_INTEGER <= number <= _LARGEST_INTEGER else None
