"""Lists the sentences of comments and docstrings that are long, longest first: `python -m tests.architecture.long_sentences`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.architecture.named_things import prose
from tests.architecture.source_tree import ROOT

MOST_WORDS = 25
# What click prints as it stands, such as examples, and what is said to ruff alone.
_NO_PROSE = re.compile(r"\x08.*?(?=\n\s*\n|\Z)|noqa:[^\n]*", re.DOTALL)
_END = re.compile(r"(?<=[.!?])\s+|:\s*\n|\n\s*\n|\n\s*[-*] ")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="*", type=Path, default=[ROOT / "reconciler"])
    parser.add_argument("--most", type=int, default=MOST_WORDS, help="words that a sentence may have (%(default)s)")
    chosen = parser.parse_args()
    files = [file for path in chosen.paths for file in ([path] if path.is_file() else sorted(path.rglob("*.py")))]
    found = [(words, file, line, text) for file in files for words, line, text in sentences(file.read_text())]
    show(found, chosen.most)


def show(found: Sequence[tuple[int, Path, int, str]], most: int = MOST_WORDS) -> None:
    """Prints the long ones. found: the number of words, the file, the line and the sentence."""
    long = sorted((each for each in found if each[0] > most), key=lambda each: (-each[0], each[1:]))
    for words, file, line, text in long:
        print(f"{words:3d}  {file.absolute().relative_to(ROOT)}:{line}: {text}")
    print(f"{len(long)} of {len(found)} sentences have more than {most} words")


def sentences(source: str) -> Iterator[tuple[int, int, str]]:
    """How many words, the line at which it begins, and the sentence itself."""
    for first, written in prose(source):
        text = _NO_PROSE.sub(_lines_alone, written)
        start = 0
        for end in [*(found.start() for found in _END.finditer(text)), len(text)]:
            sentence = " ".join(text[start:end].split())
            begins = start + len(text[start:end]) - len(text[start:end].lstrip())
            if sentence.strip("."):
                yield len(sentence.split()), first + text[:begins].count("\n"), sentence
            start = end


def _lines_alone(found: re.Match[str]) -> str:
    return "." + "\n" * found.group().count("\n")


if __name__ == "__main__":
    main()
