"""Files that were read before, so that only changed files of a tree are read again.

Only what depends on a single file's path and content is kept. What depends on several files is computed each time.
"""

from __future__ import annotations

from reconciler.manifests.document import Document
from reconciler.manifests.load import load_file
from reconciler.manifests.reading import ReadDocument, read_document
from reconciler.model.findings import Finding

_File = tuple[str, bytes]


class KnownFiles:
    """The files of the tree that was read last, and of the one being read."""

    def __init__(self) -> None:
        self._items: dict[_File, tuple[Document | Finding, ...]] = {}
        self._read: dict[int, ReadDocument] = {}
        self._before: tuple[dict[_File, tuple[Document | Finding, ...]], dict[int, ReadDocument]] = ({}, {})

    def begin(self) -> None:
        """Begins another tree. Files that are in neither this tree nor the last are dropped."""
        self._before = (self._items, self._read)
        self._items, self._read = {}, {}

    def items(self, path: str, content: bytes) -> tuple[Document | Finding, ...]:
        """The same as `load_file`, from memory where possible."""
        key = (path, content)
        found = self._before[0].get(key)
        self._items[key] = tuple(load_file(path, content)) if found is None else found
        return self._items[key]

    def document(self, document: Document) -> ReadDocument:
        """The same as `read_document`, from memory where possible. The result keeps the document alive, since its id is the key."""
        found = self._before[1].get(id(document))
        if found is None or found.document is not document:
            found = read_document(document)
        self._read[id(document)] = found
        return found
