"""NodePools whose budgets are written in local time, no two alike. Used by the benchmark of compiling them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from reconciler.model.nodes import DisruptionBudget
from reconciler.model.schedules import AllowWindow, LocalBudgets
from reconciler.timetable.compiled_budgets import compiled

POOLS = 200
ZONES = ("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe", "America/Santiago")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)


def compile_all() -> None:
    """Every pool's form for the present month, as the first pass of a month has to."""
    for number in range(POOLS):
        minute, hour = number % 60, number % 24
        office = DisruptionBudget("0", None, f"{minute} {hour} * * mon-fri", timedelta(hours=8))
        nights = AllowWindow(f"{minute} {(hour + 13) % 24} * * *", timedelta(hours=9))
        form = compiled(LocalBudgets((office, DisruptionBudget("10%")), (nights,), ZONES[number % len(ZONES)]), NOW)
        assert form.budgets


if __name__ == "__main__":
    compile_all()
