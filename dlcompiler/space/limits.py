"""Rules that follow from a machine: limits on lanes, registers and cores."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dlcompiler.space.rules import Filter
from dlcompiler.target import Target


def registers_hold(
    target: Target, vectors: Callable[[Mapping[str, Any]], int], *, spare: int = 0
) -> Filter:
    """Return the rule that the vectors of a config fit into the registers.

    Parameters
    ----------
    target : Target
        The machine with the registers.
    vectors : callable
        Counts the vectors that a config keeps, from the values of its knobs.
    spare : int
        Number of registers that are needed for other values.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> rule = registers_hold(resolve("x86-64-avx2"), lambda v: v["rows"] * v["vectors"], spare=4)
    >>> rule.rule, rule.allows({"rows": 6, "vectors": 2}), rule.allows({"rows": 8, "vectors": 2})
    ('at most 12 vectors in registers', True, False)
    """
    most = target.vector_registers - spare
    return Filter(f"at most {most} vectors in registers", lambda v: vectors(v) <= most)


def fills_lanes(target: Target, dtype: str, extent: Callable[[Mapping[str, Any]], int]) -> Filter:
    """Return the rule that an extent is a multiple of the lanes of a vector.

    Examples
    --------
    >>> from dlcompiler.target import resolve
    >>> rule = fills_lanes(resolve("x86-64-avx2"), "float32", lambda v: v["tile"])
    >>> rule.rule, rule.allows({"tile": 16}), rule.allows({"tile": 12})
    ('whole vectors of 8 lanes', True, False)
    """
    lanes = target.lanes(dtype)
    return Filter(f"whole vectors of {lanes} lanes", lambda v: extent(v) % lanes == 0)


def feeds_cores(target: Target, parts: Callable[[Mapping[str, Any]], int]) -> Filter:
    """Return the rule that there are at least as many parts of work as cores.

    Examples
    --------
    >>> from dataclasses import replace
    >>> from dlcompiler.target import resolve
    >>> rule = feeds_cores(replace(resolve("x86-64-avx2"), cores=4), lambda v: 64 // v["tile"])
    >>> rule.rule, rule.allows({"tile": 16}), rule.allows({"tile": 32})
    ('work for 4 cores', True, False)
    """
    return Filter(f"work for {target.cores} cores", lambda v: parts(v) >= target.cores)
