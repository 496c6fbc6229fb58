"""Exact pricing: the most that chunks on one node can be worth at given dual prices, by an integer program for each bin type.

It takes many times as long as filling nodes greedily (`pricing.py`), but what it says is sure, so that a bound can rest on it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from reconciler.optimizer.bin_types import Pattern
from reconciler.optimizer.master import MasterSolution
from reconciler.optimizer.packing import Packing
from reconciler.optimizer.solver import UNBOUNDED, Floats, load_solver, run
from reconciler.optimizer.work_budget import WorkBudget
from reconciler.placement.amounts import Amounts

_LEAST_PRICE = 1e-9
"""USD an hour that stands for none, where it is divided by."""
_LEAST_GAIN = 1e-7
"""Part of a node's price by which a column must save; less is rounding."""
_GAP = 0.001
"""Part of what chunks are worth that is left open; less takes up to four times as long."""


class Knapsacks:
    """A program for each bin type. What excludes only some of the others is left out, so that chunks are worth rather too much."""

    def __init__(self, packing: Packing) -> None:
        self._bin_types = packing.bin_types
        self._highs, _ = load_solver()
        self._programs = [self._program(packing, number) for number in range(len(packing.bin_types))]

    def price(self, solution: MasterSolution, budget: WorkBudget, *, branches: int) -> tuple[float, list[Pattern]]:
        """How many times its price a node's chunks are worth at most, at least once; and patterns that are worth more than they cost.

        Bin types that are worth less than the best so far, even when chunks are split, are left out. branches: of each program.
        """
        dual_prices, surcharge = solution.dual_prices, solution.surcharge(self._bin_types.pools)
        prices = np.maximum(self._bin_types.prices / 1e9, _LEAST_PRICE)
        every = range(len(self._programs))
        split = [self._solve(number, dual_prices, budget, whole=False) for number in every]
        most = (np.array([worth for worth, _ in split]) - surcharge) / prices
        ratio, found = 1.0, []
        for number in np.argsort(-most, kind="stable").tolist():
            if most[number] <= ratio:
                break
            self._programs[number][0].setOptionValue("mip_max_nodes", branches)
            worth, counts = self._solve(number, dual_prices, budget, whole=True)
            ratio = max(ratio, min(float(most[number]), (worth - float(surcharge[number])) / float(prices[number])))
            if len(counts) and counts @ dual_prices > surcharge[number] + prices[number] * (1 + _LEAST_GAIN):
                held = np.flatnonzero(counts)
                items = tuple(zip(held.tolist(), counts[held].tolist(), strict=True))
                found.append(self._bin_types.pattern(number, items))
        return ratio, found

    def _program(self, packing: Packing, number: int) -> tuple[Any, Amounts]:
        """With the item types that it has a variable for."""
        _, program = load_solver()
        for name, value in (("presolve", "on"), ("mip_rel_gap", _GAP)):
            program.setOptionValue(name, value)
        items = np.flatnonzero(packing.most_alone[number])
        for upper in packing.most_alone[number, items].tolist():
            program.addVar(0.0, float(upper))
        for shares in packing.shares(number):
            held = np.flatnonzero(shares[items]).astype(np.int32)
            program.addRow(-UNBOUNDED, 1.0, len(held), held, shares[items][held])
        return program, items

    def _solve(self, number: int, dual_prices: Floats, budget: WorkBudget, *, whole: bool) -> tuple[float, Amounts]:
        """What chunks on a node are worth at most, and of whole ones the best that was found."""
        kind = self._highs.HighsVarType.kInteger if whole else self._highs.HighsVarType.kContinuous
        program, items = self._programs[number]
        every = np.arange(len(items), dtype=np.int32)
        program.changeColsIntegrality(len(every), every, np.full(len(every), kind))
        program.changeColsCost(len(every), every, -dual_prices[items])
        solved = run(self._highs, program, budget, whole=whole)
        info = program.getInfo()
        if not whole:
            return (-float(info.objective_function_value) if solved else math.inf), np.zeros(0, dtype=np.int64)
        counts = np.zeros(len(dual_prices), dtype=np.int64)
        counts[items] = np.rint(np.array(program.getSolution().col_value))
        return -float(info.mip_dual_bound), counts
