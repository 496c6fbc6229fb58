"""What the daemon's page costs with 500 buffers, 5,000 nodes and 150,000 pods: `python -m tests.perf.status_page`.

CPU seconds: of a pass, of the first drawing after a pass, of an answer that the page is still the same, and of Chromium showing it. And by
the clock, how long a viewer waits for a page that has to be drawn.
"""

from __future__ import annotations

import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from statistics import median

from reconciler.ports import PassResult
from reconciler.telemetry.logs import configure_logs
from tests.browser import Browser
from tests.fakes.clock import ManualClock
from tests.page_worlds import large_pass, world

BUFFERS, NODES, PODS = 500, 5000, 150_000
MOST_OF_A_PASS, MOST_OF_A_LOAD = 0.01, 1.0
"""Seconds of CPU: what a pass may spend on the page, and what drawing it and showing it in a browser may take together."""
TURNS = 7


def held_page() -> bool:
    """Prints the figures; whether any is more than it may be."""
    configure_logs(form="console", level="error")
    clock = ManualClock()
    plan, seen = large_pass(clock.now(), buffers=BUFFERS, nodes=NODES, pods=PODS)
    made = world("large", clock)
    observed, drawn, kept, loaded, waited, size = [], [], [], [], [], 0
    with made.served() as address, tempfile.TemporaryDirectory() as profile, Browser(Path(profile)) as browser:
        for _ in range(TURNS):
            clock.advance(300)
            began = time.process_time()
            made.last.observe("tick", PassResult(plan=plan), seen)
            observed.append(time.process_time() - began)
            began = time.process_time()
            tag, size = _asked(f"{address}/")
            drawn.append(time.process_time() - began)
            began = time.process_time()
            _asked(f"{address}/", tag)
            kept.append(time.process_time() - began)
            clock.advance(300)
            made.last.observe("tick", PassResult(plan=plan), seen)
            with browser.opened(f"{address}/") as tab:
                loaded.append(tab.seconds())
                waited.append(tab.value("performance.getEntriesByType('navigation')[0].loadEventEnd"))
    over = min(observed) > MOST_OF_A_PASS or min(drawn) + min(loaded) > MOST_OF_A_LOAD
    print(
        f"page of {BUFFERS} buffers, {NODES:,} nodes, {PODS:,} pods: {min(observed) * 1000:.1f} ms of CPU in a pass, "
        f"{min(drawn) * 1000:.0f} ms drawn ({size / 1000:.0f} kB), {min(kept) * 1000:.1f} ms kept, "
        f"{min(loaded) * 1000:.0f} ms in Chromium (median {median(loaded) * 1000:.0f}), all of CPU; "
        f"{min(waited):.0f} ms until it has loaded (median {median(waited):.0f})"
        f"{'  EXCEEDED' if over else ''}"
    )
    return over


def _asked(address: str, tag: str = "") -> tuple[str, int]:
    """The ETag, and how many bytes came."""
    request = urllib.request.Request(address, headers={"If-None-Match": tag} if tag else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.headers["ETag"], len(response.read())
    except urllib.error.HTTPError:  # the tag is still the newest
        return tag, 0


if __name__ == "__main__":
    sys.exit(held_page())
