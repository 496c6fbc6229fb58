"""Removes secrets from whatever is about to be logged.

Credentials reach messages in three ways: under a key that names one, inside a URL, and as a token of a known form. Any part of a
URL's query may be one. All three are masked; the rest of the text stays readable.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"
_KEY = re.compile(r"(?i)(?:token|password|passwd|secret|authorization|credentials?|private[_\-]?key)$")
_IN_TEXT = (
    (re.compile(r"(?i)\b([a-z][a-z0-9+.\-]{0,20}://)[^/\s@]+@"), rf"\1{MASK}@"),
    (re.compile(r"(?i)\b([a-z][a-z0-9+.\-]{0,20}://[^\s?#\"'<>]*)\?[^\s#\"'<>]+"), rf"\1?{MASK}"),
    (re.compile(r"(?i)([?&](?:key|sig|signature|code)=)[^\s&#\"']+"), rf"\1{MASK}"),
    (re.compile(r"(?i)\b(bearer|basic)\s+[a-z0-9+/=._~\-]{8,}"), rf"\1 {MASK}"),
    (
        re.compile(
            r"(?i)\b((?:access_|refresh_|id_|private_)?token|password|client_secret|api_?key)(=|:\s?)[^\s&,;\"']+"
        ),
        rf"\1\2{MASK}",
    ),
    (re.compile(r"\b(?:gh[pousr]_|github_pat_|glpat-|gto_)[A-Za-z0-9_\-]{10,}"), MASK),
    (re.compile(r"\beyJ[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]{5,}\.[A-Za-z0-9_\-]{5,}"), MASK),
    (re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL), MASK),
)
_SIGNS = re.compile(
    r"://|[?&]|eyJ|gto_|gh[pousr]_|github_pat_|glpat-|-----BEGIN|(?i:bearer|basic|token|password|secret|api_?key)"
)
"""Every text that a pattern can match contains one of these. Most texts contain none, and are passed over quickly."""


def redacted_text(text: str) -> str:
    """`https://user:token@git.example/r.git` → `https://***@git.example/r.git`, likewise for anything that looks like a credential."""
    if not _SIGNS.search(text):
        return text
    for pattern, replacement in _IN_TEXT:
        text = pattern.sub(replacement, text)
    return text


def redacted(value: Any, key: str = "") -> Any:
    """The value with every credential in it masked, at any depth. key: the name it is logged under."""
    if key and value not in (None, "") and _KEY.search(key):
        return MASK
    if isinstance(value, str):
        return redacted_text(value)
    if isinstance(value, Mapping):
        return {name: redacted(item, str(name)) for name, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redacted(item) for item in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return redacted_text(str(value))
