"""The values of knobs that split, reorder and annotate loops, by the policies of AutoTVM.

**Source:** the names and the meaning of the policies are those of ``tvm.autotvm``'s module
``task.space`` (T. Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018); indices of a
space count its points in the same order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TypeAlias

from dlcompiler.errors import TuningError
from dlcompiler.space.knob import divisors

Sizes: TypeAlias = tuple[int, ...]
SPLITS = ("factors", "power2", "verbose", "candidate")
ORDERS = ("identity", "all", "interval_all", "candidate", "interleave", "interleave_cuda")
WHOLE = -1
"""Stands for the outermost extent of a split, which follows from the others."""
_MOST_VALUES = 1 << 16
_THREADS = {
    "bind_gpu": (6, 4, 2),
    "bind_gpu_virtual": (9, 6, 3),
}
_ANNOTATIONS = ("none", "unroll", "vec")


def split_sizes(
    extent: int,
    outputs: int,
    policy: str = "factors",
    *,
    max_factor: int | None = None,
    no_tail: bool | None = None,
    candidate: Sequence[Sequence[int]] = (),
) -> tuple[Sizes, ...]:
    """Return the ways to split a loop into several.

    Parameters
    ----------
    extent : int
        Iterations of the loop.
    outputs : int
        Loops that are made of it.
    policy : {"factors", "power2", "verbose", "candidate"}
        ``factors``: sizes that divide the extent. ``power2``: powers of two up to the extent.
        ``verbose``: both. ``candidate``: the sizes in `candidate`.
    max_factor : int, optional
        The largest size, except for the first (outermost) size.
    no_tail : bool, optional
        Whether the product of the sizes must divide the extent; by default, for ``"factors"`` only.
    candidate : sequence of sequence of int
        The sizes of the policy ``"candidate"``.

    Returns
    -------
    tuple of tuple of int
        Sizes from outside to inside. The first is -1 (the rest of the extent), unless it is given.

    Raises
    ------
    TuningError
        If there is no such policy, or a size is not a positive integer.

    Examples
    --------
    >>> split_sizes(6, 2)
    ((-1, 1), (-1, 2), (-1, 3), (-1, 6))
    >>> split_sizes(6, 3, "power2", max_factor=2)
    ((-1, 1, 1), (-1, 2, 1), (-1, 1, 2), (-1, 2, 2))
    """
    where = f"split a loop of {extent} into {outputs}"
    if type(outputs) is not int or outputs < 1:
        raise TuningError(where, "num_outputs is not a positive number", got=repr(outputs))
    if policy == "candidate":
        return tuple(_checked(sizes, outputs, where) for sizes in candidate)
    if policy not in SPLITS:
        raise TuningError(where, "no such policy", got=repr(policy), expected=", ".join(SPLITS))
    extent, exact, powers = max(extent, 1), set(divisors(max(extent, 1))), _powers(extent)
    choices = {"factors": exact, "power2": powers, "verbose": exact | powers}[policy]
    limit = extent if max_factor is None else max_factor
    factors = sorted(factor for factor in choices if factor <= limit)
    is_exact = no_tail if no_tail is not None else policy == "factors"
    if len(factors) ** (outputs - 1) > _MOST_VALUES:
        raise TuningError(
            where, "there are too many ways", got=f"{len(factors)} sizes for each loop",
            expected=f"at most {_MOST_VALUES:,} ways", hint="max_factor, or fewer num_outputs",
        )  # fmt: skip
    return tuple(
        (WHOLE, *reversed(sizes))
        for sizes in itertools.product(factors, repeat=outputs - 1)
        if (product := math.prod(sizes)) <= extent and (not is_exact or extent % product == 0)
    )


def _powers(extent: int) -> set[int]:
    return {1 << n for n in range(max(extent, 1).bit_length())}


def _checked(sizes: Sequence[int], outputs: int, where: str) -> Sizes:
    inner = list(sizes)[1:]
    if len(sizes) != outputs or any(type(size) is not int or size < 1 for size in inner):
        raise TuningError(
            where, "a candidate is not a size for each loop", got=repr(tuple(sizes)),
            expected=f"{outputs} numbers, from outside to inside",
        )  # fmt: skip
    return tuple(int(size) for size in sizes)


def loop_orders(
    count: int,
    policy: str,
    *,
    interval: tuple[int, int] | None = None,
    candidate: Sequence[Sequence[int]] = (),
    spatial: Sequence[Sequence[int]] = (),
    reduce: Sequence[Sequence[int]] = (),
) -> tuple[Sizes, ...]:
    """Return orders of loops, as permutations of their positions.

    Parameters
    ----------
    count : int
        Number of loops.
    policy : {"identity", "all", "interval_all", "candidate", "interleave", "interleave_cuda"}
        ``identity``: unchanged. ``all``: any order. ``interval_all``: any order of the loops in
        `interval`. ``candidate``: the given orders. ``interleave``: chains of spatial loops and of
        reduction loops are merged, with the innermost spatial loops among the reduction loops.
        ``interleave_cuda``: the same, with the innermost spatial loops inside them.
    interval : tuple of int
        The first position that is permuted, and the position after the last.
    candidate : sequence of sequence of int
        Orders given.
    spatial, reduce : sequence of sequence of int
        Chains of positions from outside to inside.

    Examples
    --------
    >>> loop_orders(3, "interval_all", interval=(1, 3))
    ((0, 1, 2), (0, 2, 1))
    >>> loop_orders(5, "interleave", spatial=[(0, 2), (1, 3)], reduce=[(4,)])
    ((0, 1, 2, 3, 4),)
    """
    where = f"order {count} loops"
    match policy:
        case "identity":
            return (tuple(range(count)),)
        case "all" | "interval_all":
            begin, end = (0, count) if policy == "all" or interval is None else interval
            return _permuted(count, begin, end, where)
        case "candidate":
            return tuple(_permutation(order, count, where) for order in candidate)
        case "interleave" | "interleave_cuda":
            inner = [chain[-1:] for chain in spatial]
            if policy == "interleave":
                insides = _merged([*inner, *reduce])
            else:
                insides = [(*order, *itertools.chain(*inner)) for order in _merged(reduce)]
            outsides = _merged([chain[:-1] for chain in spatial])
            return tuple(
                _permutation((*outer, *order), count, where)
                for outer in outsides
                for order in insides
            )
    raise TuningError(where, "no such policy", got=repr(policy), expected=", ".join(ORDERS))


def _permuted(count: int, begin: int, end: int, where: str) -> tuple[Sizes, ...]:
    if not 0 <= begin <= end <= count:
        raise TuningError(
            where, "not an interval of them", got=f"({begin}, {end})", expected=f"0 to {count}"
        )
    if math.factorial(end - begin) > _MOST_VALUES:
        raise TuningError(
            where, "there are too many orders", got=f"{end - begin} loops in any order",
            hint="policy='candidate', or a shorter interval",
        )  # fmt: skip
    return tuple(
        (*range(begin), *order, *range(end, count))
        for order in itertools.permutations(range(begin, end))
    )


def _permutation(order: Sequence[int], count: int, where: str) -> Sizes:
    if len(set(order)) != len(order) or not set(order) <= set(range(count)):
        raise TuningError(where, "not an order of them", got=repr(tuple(order)))
    return tuple(order)


def _merged(chains: Sequence[Sequence[int]]) -> list[Sizes]:
    """Merge chains of loops: repeatedly take the first element of the longest remaining chain."""
    rests = [tuple(chain) for chain in chains]
    merged: list[int] = []
    while any(rests):
        longest = max(range(len(rests)), key=lambda n: len(rests[n]))
        first, *rest = rests[longest]
        merged.append(first)
        rests[longest] = tuple(rest)
    return [tuple(merged)]


def loop_annotations(
    count: int, policy: str, *, num_anchor: int | None = None
) -> tuple[tuple[str, ...] | Sizes, ...]:
    """Return annotations of loops.

    Parameters
    ----------
    count : int
        Number of loops.
    policy : str
        ``none``, ``try``, ``unroll`` and ``vec`` joined by ``_``: each loop has one of them, at
        most one is ``vec``, and ``try`` leaves a loop as it is. ``locate_cache``: positions where
        stages are attached. ``bind_gpu``, ``bind_gpu_virtual``: loops of a GPU's threads.
    num_anchor : int
        Stages that ``locate_cache`` attaches.

    Examples
    --------
    >>> loop_annotations(2, "try_vec")
    (('none', 'none'), ('none', 'vec'), ('vec', 'none'))
    >>> loop_annotations(3, "locate_cache", num_anchor=2)
    ((0, 1), (0, 2), (1, 2))
    """
    where = f"annotate {count} loops"
    if policy == "locate_cache":
        if type(num_anchor) is not int:
            raise TuningError(where, "num_anchor is not a number", got=repr(num_anchor))
        return tuple(itertools.combinations(range(count), num_anchor))
    if policy in _THREADS:
        raise TuningError(where, f"{policy} is for GPUs, which come in a later version")
    kinds = policy.replace("try", "none").split("_")
    unknown = [kind for kind in kinds if kind not in _ANNOTATIONS]
    if unknown:
        raise TuningError(
            where, "no such policy", got=repr(policy),
            expected="none, try, unroll and vec, joined by _; or locate_cache",
        )  # fmt: skip
    kinds = list(dict.fromkeys(kinds))
    if len(kinds) ** count > _MOST_VALUES:
        raise TuningError(where, "there are too many ways", got=f"{len(kinds)} for each loop")
    ways = itertools.product(kinds, repeat=count)
    return tuple(way for way in ways if way.count("vec") <= 1)
