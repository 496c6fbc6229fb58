"""The independent checker finds nothing wrong with placements under the rarer rules, combined as nobody would think of."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings

from reconciler.placement.checker import violations
from reconciler.placement.place import place
from tests.properties.wide_worlds import WideWorld, wide_worlds

EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "500"))
"""10,000 take some minutes."""


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=wide_worlds())
def test_breaks_no_rule(world: WideWorld) -> None:
    placement = place(
        world.view,
        node_pools=world.node_pools,
        instance_types=world.instance_types,
        demands=world.demands,
        overlays=world.overlays,
    )

    found = violations(
        world.view,
        node_pools=world.node_pools,
        instance_types=world.instance_types,
        demands=world.demands,
        placement=placement,
        overlays=world.overlays,
    )
    assert found == ()
