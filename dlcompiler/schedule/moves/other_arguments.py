"""Candidates for a suggestion: the same primitive on the same loops, with other arguments."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from dlcompiler.ir import Axis
from dlcompiler.schedule.moves.candidates import Candidate, Refusal, source_by_primitive
from dlcompiler.schedule.moves.enumeration import intrinsics_of, layouts
from dlcompiler.schedule.primitives.base import SCOPES
from dlcompiler.schedule.state import same_axes


def _of_split(refused: Refusal) -> Iterator[Candidate]:
    call = refused.call
    name = "nparts" if call.args.get("nparts") is not None else "factor"
    for number in refused.factors(refused.axis, call.args.get(name)):
        yield refused.one("split", call.stage, axis=refused.axis, **{name: number})


def _of_tile(refused: Refusal) -> Iterator[Candidate]:
    args = refused.call.args
    sizes = [refused.factors(args.get(axis), args.get(f"{axis}_factor"))[:1] for axis in ("x", "y")]
    for x_factor, y_factor in itertools.product(*sizes):
        yield refused.but(x_factor=x_factor, y_factor=y_factor)


def _of_reorder(refused: Refusal) -> Iterator[Candidate]:
    """Yield the orders in which one loop is moved, those nearest to the wanted order first."""
    leaves, wanted = refused.leaves, _wanted_order(refused)
    orders: list[tuple[Axis, ...]] = []
    for leaf, place in itertools.product(leaves, range(len(leaves))):
        rest = [other for other in leaves if other is not leaf]
        order = (*rest[:place], leaf, *rest[place:])
        if not any(same_axes(order, known) for known in (leaves, *orders)):
            orders.append(order)
    for order in sorted(orders, key=lambda order: _inversions(order, wanted)):
        moved = [new for new, old in zip(order, leaves, strict=True) if new is not old]
        yield refused.but(axes=tuple(moved))


def _wanted_order(refused: Refusal) -> tuple[Axis, ...]:
    """Return all loops in the wanted order; ignore duplicates and arguments that are not loops."""
    given = refused.call.args.get("axes")
    axes: list[Axis] = []
    for axis in given if isinstance(given, tuple) else ():
        is_loop = isinstance(axis, Axis) and refused.stage.has_leaf(axis)
        if is_loop and not any(axis is other for other in axes):
            axes.append(axis)
    queue = iter(axes)
    return tuple(
        next(queue) if any(leaf is axis for axis in axes) else leaf for leaf in refused.leaves
    )


def _inversions(order: Sequence[Axis], wanted: Sequence[Axis]) -> int:
    """Return how many pairs of loops are in the opposite order (Kendall's distance)."""
    place = {leaf: n for n, leaf in enumerate(wanted)}
    numbers = [place[leaf] for leaf in order]
    return sum(a > b for a, b in itertools.combinations(numbers, 2))


def _of_tensorize(refused: Refusal) -> Iterator[Candidate]:
    """Yield calls with the shipped intrinsics whose sizes fit the wanted loop."""
    for leaf, name in fitting_intrinsics(refused):
        if leaf is refused.axis:
            yield refused.but(intrin=name)


def fitting_intrinsics(refused: Refusal) -> Iterator[tuple[Axis, str]]:
    """Yield each loop of the stage with each shipped intrinsic whose sizes fit."""
    if not refused.stage.is_placeholder and not refused.stage.is_inlined:
        yield from intrinsics_of(refused.state, refused.stage)


def _of_rfactor(refused: Refusal) -> Iterator[Candidate]:
    yield refused.one("rfactor", refused.call.stage, axis=refused.axis)


def _of_cache_read(refused: Refusal) -> Iterator[Candidate]:
    readers = [s.name for s in refused.state.stages if refused.stage.tensor in s.op.input_tensors]
    for scope, name in itertools.product(cache_scopes(refused), readers):
        yield refused.but(scope=scope, readers=(name,))


def _of_cache_write(refused: Refusal) -> Iterator[Candidate]:
    for scope in cache_scopes(refused):
        yield refused.but(scope=scope)


def cache_scopes(refused: Refusal) -> list[str]:
    """Return the scopes to offer for a cache: the wanted one if a CPU has it, else all of a CPU."""
    wanted = refused.call.args.get("scope")
    if isinstance(wanted, str) and wanted in SCOPES:
        return [wanted]
    return list(reversed(SCOPES))


def _of_set_scope(refused: Refusal) -> Iterator[Candidate]:
    for scope in reversed(SCOPES):
        yield refused.but(scope=scope)


def _of_align(refused: Refusal) -> Iterator[Candidate]:
    offset = {"offset": 0} if refused.call.name == "storage_align" else {}
    for factor in (16, 8, 4):
        yield refused.but(factor=factor, **offset)


def _of_transform_layout(refused: Refusal) -> Iterator[Candidate]:
    for text in layouts(refused.stage):
        yield refused.but(index_map=text)


def _of_prefetch(refused: Refusal) -> Iterator[Candidate]:
    yield refused.but(offset=1)


def _of_pragma(refused: Refusal) -> Iterator[Candidate]:
    yield refused.but(pragma_value=16)
    yield refused.but(pragma_type="auto_unroll_max_step", pragma_value=16)


other_arguments = source_by_primitive(
    {
        "split": _of_split,
        "tile": _of_tile,
        "reorder": _of_reorder,
        "tensorize": _of_tensorize,
        "rfactor": _of_rfactor,
        "cache_read": _of_cache_read,
        "cache_write": _of_cache_write,
        "set_scope": _of_set_scope,
        "storage_align": _of_align,
        "align_extent": _of_align,
        "transform_layout": _of_transform_layout,
        "prefetch": _of_prefetch,
        "pragma": _of_pragma,
    }
)
