"""Files that were read before, so that of a tree in which little changed little is read again.

What a file says follows from its path and content alone; what follows from several files is worked out each time.
"""

from __future__ import annotations

from reconciler.manifests.document import Document
from reconciler.manifests.load import load_file
from reconciler.manifests.reading import ReadDocument, read_document
from reconciler.model.findings import Finding

_File = tuple[str, bytes]


class KnownFiles:
    """Of the tree that was read last and the one that is being read."""

    def __init__(self) -> None:
        self._items: dict[_File, tuple[Document | Finding, ...]] = {}
        self._read: dict[int, ReadDocument] = {}
        self._before: tuple[dict[_File, tuple[Document | Finding, ...]], dict[int, ReadDocument]] = ({}, {})

    def begin(self) -> None:
        """Another tree is read: what is not in it is forgotten after the next one."""
        self._before = (self._items, self._read)
        self._items, self._read = {}, {}

    def items(self, path: str, content: bytes) -> tuple[Document | Finding, ...]:
        """As `load_file`."""
        key = (path, content)
        found = self._before[0].get(key)
        self._items[key] = tuple(load_file(path, content)) if found is None else found
        return self._items[key]

    def document(self, document: Document) -> ReadDocument:
        """As `read_document`. The result keeps the document, so that no other can have its identity."""
        found = self._before[1].get(id(document))
        if found is None or found.document is not document:
            found = read_document(document)
        self._read[id(document)] = found
        return found
