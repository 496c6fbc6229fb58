"""How volumes and allocated devices kept a chunk from being placed.

Pods of one batch may have claims of their own, as those of a StatefulSet do. Each gets a reason about its own.
"""

from __future__ import annotations

from reconciler.model.placement import UnplacedReason
from reconciler.model.pods import NodeSelectorTerm, PodShape
from reconciler.placement.needs import terms_of
from reconciler.placement.phrases import asked_at_once, is_nowhere, place_words, values_words
from reconciler.placement.requirements import Requirements, Values

_DEVICE_CLAIM = "ResourceClaim"


def obstacle_reason(shape: PodShape) -> UnplacedReason:
    """For a shape with an obstacle, which is the only reason that counts."""
    return UnplacedReason(_reason(shape.obstacle), 1, shape.obstacle)


def claim_reasons(shape: PodShape) -> tuple[tuple[UnplacedReason, ...], bool]:
    """Where each claim can be used; and whether the pod itself can be in none of those places, so that no other reason counts."""
    against = [words for claim, places in shape.attachment_places if (words := _against(shape, claim, places))]
    if against:
        return tuple(UnplacedReason(_reason(words), 1, words) for words in against), True
    where = [(claim, place_words(places)) for claim, places in shape.attachment_places]
    if len(where) > 1 and all(map(is_nowhere, shape.attachment_terms)):
        apart = "; ".join(f"{claim} {place}" for claim, place in where)
        return (UnplacedReason("volumes", 1, f"its volumes are in places that have no node in common: {apart}"),), True
    return tuple(
        UnplacedReason(_reason(claim), 1, f"{claim} can be used only {place}") for claim, place in where
    ), False


def _against(shape: PodShape, claim: str, places: tuple[NodeSelectorTerm, ...]) -> str:
    """Why the pod may be in none of the places of the claim, in words; "" if it may be in some."""
    terms = list(terms_of(shape, ()))
    asked = [Requirements.of(place.expressions, stable=False) for place in places]
    keys = [term.literal.conflict(wanted) for wanted in asked for term in terms]
    key = next((key for key in keys if key is not None), None)
    if key is None or any(item is None for item in keys):
        return ""
    expressions = [item for term in shape.required_node_terms for item in term.expressions]
    own = asked_at_once(key, shape.node_selector, expressions) or values_words(terms[0].literal.get(key) or Values())
    return f"{claim} can be used only {place_words(places)}, and the pod asks for {own}"


def _reason(words: str) -> str:
    return "resource claims" if words.startswith(_DEVICE_CLAIM) else "volumes"
