"""The independent checker finds nothing wrong with placements under the rarer rules, combined as nobody would think of."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reconciler.placement.checker import violations
from reconciler.placement.place import PlacementOptions, place
from tests.properties.wide_worlds import WideWorld, wide_worlds

EXAMPLES = int(os.environ.get("HEADROOM_EXAMPLES", "500"))
"""10,000 take some minutes."""


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(world=wide_worlds(), share=st.sampled_from([1.0, 0.34]))
def test_breaks_no_rule(world: WideWorld, share: float) -> None:
    placement = place(
        world.view,
        node_pools=world.node_pools,
        instance_types=world.instance_types,
        demands=world.demands,
        overlays=world.overlays,
        options=PlacementOptions(spot_share=share),
    )

    found = violations(
        world.view,
        node_pools=world.node_pools,
        instance_types=world.instance_types,
        demands=world.demands,
        placement=placement,
        overlays=world.overlays,
        spot_share=share,
    )
    assert found == ()
