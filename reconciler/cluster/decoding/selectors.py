"""Label selectors in the forms that scales and custom resources use."""

from __future__ import annotations

import msgspec

from reconciler.manifests.pod_shape import selector_of
from reconciler.manifests.pod_spec_wire import LabelSelectorWire
from reconciler.model.errors import Invalid
from reconciler.model.requirements import LabelSelector, parse_selector

_PARTS = frozenset({"matchLabels", "matchExpressions"})


def selector_in(raw: msgspec.Raw) -> LabelSelector | None:
    """A selector in any of its forms: a LabelSelector, a bare map of labels, or text; None where there is none.

    An empty one counts as none, since a scale that selects every pod of its namespace says nothing about its own.
    """
    value = msgspec.json.decode(raw)
    if isinstance(value, dict) and not value.keys() <= _PARTS:
        value = {"matchLabels": value}
    try:
        if isinstance(value, str):
            return parse_selector(value) if value.strip() else None
        return selector_of(msgspec.convert(value, LabelSelectorWire)) if isinstance(value, dict) and value else None
    except (msgspec.ValidationError, Invalid):
        return None
