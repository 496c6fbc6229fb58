"""Lists the long sentences of the documentation, longest first: `python -m tests.docs.long_sentences`.

Prose and list items count; tables, headings and code do not. Code in a line is one word, as is a number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.architecture.long_sentences import show
from tests.architecture.source_tree import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
_ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s+")
_NO_PROSE = ("|", "#", "<", "!", "    ")
_END = re.compile(r"(?<=[.!?])[)\"*]*\s+(?=[\"`*(\[A-Z0-9]|headroom|numba|kube-)")


def main() -> None:
    show([(words, page, line, text) for page in PAGES for words, line, text in sentences(page.read_text())])


def sentences(text: str) -> Iterator[tuple[int, int, str]]:
    """How many words, the line at which its paragraph begins, and the sentence without the code in it."""
    for line, paragraph in _paragraphs(text):
        for sentence in _END.split(re.sub(r"\]\([^)]*\)", "]", re.sub(r"`[^`]*`", "`…`", paragraph))):
            yield len(sentence.split()), line, sentence


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    paragraph: list[str] = []
    first, in_code = 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        item = _ITEM.match(line)
        is_fence = line.lstrip().startswith("```")
        ends = is_fence or in_code or not line.strip() or (not paragraph and line.startswith(_NO_PROSE[4]))
        if paragraph and (ends or item or line.startswith(_NO_PROSE[:4])):
            yield first, " ".join(paragraph)
            paragraph = []
        in_code ^= is_fence
        if ends or line.startswith(_NO_PROSE[:4]):
            continue
        first = first if paragraph else number
        paragraph.append(line[item.end() if item else 0 :].strip())


if __name__ == "__main__":
    main()
