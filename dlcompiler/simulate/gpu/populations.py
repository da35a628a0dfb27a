"""Count the warps that execute an access, and what it costs, without running through all loops.

The address of an access is a sum. Its part that differs between the threads of a warp is computed
for each warp of a block. The rest is the same in all threads: the numbers of the block and of the
loops' iterations. Of this rest only the remainder modulo the size of a line matters, and for a
guard only by how much it may still be decided either way. The number of iterations for each
combination of these remainders is a sum over one variable after another.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias

import numpy as np

from dlcompiler.ir import Var
from dlcompiler.simulate.gpu import transactions
from dlcompiler.simulate.gpu.contributions import (
    Contribution,
    added_by,
    combinations,
    part_of,
    variables_in,
)
from dlcompiler.simulate.gpu.forms import (
    Form,
    Integers,
    Predicate,
    Test,
    Truth,
    is_computable,
    tests_of,
    truth,
    variables_of,
)

Space: TypeAlias = Literal["global", "shared", ""]
"""Memory that a warp accesses; '' for instructions that access none."""

MOST_ADDRESSES = 1 << 24
"""Most addresses that are computed for one access; beyond, only bounds are given; [1]."""
_AT_ONCE = 1 << 20
# So few states are not worth being merged before all are there.
_FEW = 256


@dataclass(frozen=True, slots=True)
class Tally:
    """How often warps execute an instruction or an access, and what it costs."""

    requests: int = 0
    """Executions by a warp, with one active thread or more; [1]."""
    lanes: int = 0
    """Executions by a thread; [1]."""
    sectors: int = 0
    """Sectors of global memory; [1]."""
    lines: int = 0
    """Lines of global memory; [1]."""
    wavefronts: int = 0
    """Passes through shared memory; [1]."""
    ideal_wavefronts: int = 0
    """Passes if no two threads needed different words of a bank; [1]."""

    def plus(self, other: Tally, factor: int = 1) -> Tally:
        """Return ``self + factor · other``."""
        mine, others = astuple(self), astuple(other)
        return Tally(*(a + factor * b for a, b in zip(mine, others, strict=True)))


FIELDS = tuple(field.name for field in fields(Tally))


def astuple(tally: Tally) -> tuple[int, int, int, int, int, int]:
    """Return the numbers of a tally in the order of its fields."""
    return (
        tally.requests, tally.lanes, tally.sectors, tally.lines, tally.wavefronts,
        tally.ideal_wavefronts,
    )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class Warps:
    """The threads of a block, warp by warp."""

    lanes: Mapping[Var, Integers]
    """Index of each thread along each axis, ``(warps, lanes)``."""
    active: Truth
    """Which lanes have a thread, ``(warps, lanes)``: the last warp may have fewer."""

    @staticmethod
    def of(axes: Sequence[tuple[Var, int]], warp_size: int) -> Warps:
        """Return the warps of a block; `axes` are its axes with their extents, x first."""
        threads = math.prod(extent for _, extent in axes)
        count = -(-threads // warp_size)
        number = np.arange(count * warp_size).reshape(count, warp_size)
        lanes, left = {}, number
        for var, extent in axes:
            lanes[var], left = left % extent, left // extent
        return Warps(lanes, number < threads)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """The loops and conditions around a statement or a part of one."""

    extents: Mapping[Var, int]
    """Variables that all threads of a warp have in common, with their extents: blocks, loops."""
    guards: tuple[Predicate, ...] = ()
    """Conditions under which a thread gets here."""
    choices: tuple[object, ...] = ()
    """What names the choices inside an expression that lead here, outermost first."""


@dataclass(frozen=True, slots=True, eq=False)
class Access:
    """One access of a thread to memory."""

    space: Space
    address: Form
    """Distance from the begin of the array; [byte]."""
    bytes: int
    """Bytes that one thread accesses; [byte]."""


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """The values of several forms, split into what a warp's threads share and the rest."""

    states: Integers
    """Values of the shared part, ``(states, forms)``; those of the address modulo a line."""
    counts: Integers
    """Number of iterations in each state, ``(states,)``."""
    lanes: Integers
    """Values of the rest, ``(forms, warps, lanes)``; a row for each warp, and each value of the
    loops that cannot be told from its threads."""
    active: Truth
    """Which lanes have a thread, ``(warps, lanes)``."""


class Populations:
    """Counts executions by the warps of a launch.

    Parameters
    ----------
    warps
        The threads of a block.
    """

    def __init__(self, warps: Warps) -> None:
        self.warps = warps
        self._known: dict[tuple[object, ...], tuple[Tally, Tally]] = {}

    def count(self, place: Place, access: Access | None = None) -> tuple[Tally, Tally]:
        """Return the least and the greatest possible counts; they are equal where all is known.

        Parameters
        ----------
        place
            Where it is executed.
        access
            The access; None for an instruction that accesses no memory.
        """
        key: tuple[object, ...] = (place,)
        if access is not None:
            same = access.address.constant % transactions.PERIOD
            key = place, access.space, access.bytes, same, access.address.key[1]
        if key not in self._known:
            self._known[key] = self._count(place, access)
        return self._known[key]

    def _remember_executions(self, place: Place, counts: tuple[Tally, Tally]) -> None:
        """Keep how often a place is executed, which an access there has shown."""
        least, most = (Tally(each.requests, each.lanes) for each in counts)
        self._known.setdefault((place,), (least, most))

    def _count(self, place: Place, access: Access | None) -> tuple[Tally, Tally]:
        if 0 in place.extents.values() or not self.warps.active.size:
            return Tally(), Tally()
        if access is None and not place.guards:
            times = math.prod(place.extents.values())
            plain = Tally(times * len(self.warps.active), times * int(self.warps.active.sum()))
            return plain, plain
        is_exact = all(map(is_computable, place.guards)) and (
            access is None or access.address.is_known
        )
        tests = [test for guard in place.guards for test in tests_of(guard)]
        forms = [test.form for test in tests]
        if access is not None and access.address.is_known:
            forms.append(access.address)
        sums = self._sums(forms, place.extents, len(tests))
        is_feasible = sums is not None
        if sums is None:
            tests, forms, is_exact = [], [], False
            sums = self._sums([], place.extents, 0)
            assert sums is not None
        least, most = Tally(), Tally()
        step = max(_AT_ONCE // max(sums.active.size, 1), 1)
        for start in range(0, len(sums.states), step):
            states = sums.states[start : start + step, :, None, None]
            values = [states[:, n] + sums.lanes[n] for n in range(len(forms))]
            known = {test: test.holds(values[n]) for n, test in enumerate(tests)}
            masks = _masks(place.guards, known, sums.active, (len(states), *sums.active.shape))
            address = values[-1] if len(forms) > len(tests) else None
            weights = sums.counts[start : start + step, None]
            high = low = _cost(masks[1], address, access, weights, is_most=True)
            if not is_exact:
                low = _cost(masks[0], address, access, weights, is_most=False)
            least, most = least.plus(low), most.plus(high)
        if access is not None and is_feasible:
            self._remember_executions(place, (least, most))
        return least, most

    # -- the distribution of sums -----------------------------------------------------------------

    def _sums(self, forms: Sequence[Form], extents: Mapping[Var, int], tests: int) -> _Sums | None:
        """Split forms; those from number `tests` on are addresses. None if that takes too long."""
        variables = {var for form in forms for var in variables_of(form)}
        free = math.prod(extent for var, extent in extents.items() if var not in variables)
        groups = _tied(forms, set(self.warps.lanes))
        own = next((group for group in groups if group & self.warps.lanes.keys()), set())
        if self._points(own, extents) * self.warps.active.size > MOST_ADDRESSES:
            return None
        lanes, active = self._of_lanes(forms, own, extents)
        low, high = lanes.min(axis=(1, 2)), lanes.max(axis=(1, 2))
        limits = _Limits(low, high, tests)
        shared = []
        for group in groups:
            if group is own:
                continue
            each = added_by(forms, group, extents)
            if each is None:
                return None
            least, most = each.ends
            limits.low, limits.high = limits.low + least, limits.high + most
            shared.append((each, least, most))
        constants = np.array([form.constant for form in forms], np.int64)
        all_low, all_high = constants + limits.low, constants + limits.high
        parts = []
        for each, least, most in shared:
            part = each.contribution((all_low - least, all_high - most), tests)
            if part is None:
                return None
            parts.append((part, least, most))
        states, counts = constants[None, :], np.array([free], np.int64)
        for part, least, most in sorted(parts, key=_reach, reverse=True):
            limits.low, limits.high = limits.low - least, limits.high - most
            size = len(states) * len(part.values)
            if size > MOST_ADDRESSES:
                return None
            states = (states[:, None, :] + part.values).reshape(size, len(forms))
            counts = (counts[:, None] * part.counts).reshape(size)
            if size > _FEW:
                states, counts = _merged(limits.clipped(states), counts)
        states, counts = _merged(limits.clipped(states.copy()), counts)
        return _Sums(states, counts, lanes, active)

    def _of_lanes(
        self, forms: Sequence[Form], group: set[Var], extents: Mapping[Var, int]
    ) -> tuple[Integers, Truth]:
        """Return the part of each form that differs between threads, and which lanes are active."""
        loops = [var for var in group if var not in self.warps.lanes]
        values = dict(self.warps.lanes)
        for var, at in combinations(loops, extents).items():
            values[var] = at[:, None, None]
        warps, width = self.warps.active.shape
        points = self._points(group, extents)
        lanes = np.empty((len(forms), points, warps, width), np.int64)
        for number, form in enumerate(forms):
            lanes[number] = part_of(form, group).at(values)
        active = self.warps.active if points == 1 else np.tile(self.warps.active, (points, 1))
        return lanes.reshape(len(forms), points * warps, width), active

    def _points(self, group: set[Var], extents: Mapping[Var, int]) -> int:
        """Return the number of combinations of the variables that are not axes of threads."""
        return math.prod(extents[var] for var in group if var not in self.warps.lanes)


@dataclass(slots=True)
class _Limits:
    """What is still to be added to the shared part of each form: at least, and at most."""

    low: Integers
    high: Integers
    tests: int

    def clipped(self, states: Integers) -> Integers:
        """Return states of which those are equal that no later addition tells apart.

        A test compares with 0. A state that is above or below 0, whatever is added, is as good as
        any other such state.
        """
        n = self.tests
        states[:, :n] = np.clip(states[:, :n], -self.high[:n] - 1, -self.low[:n] + 1)
        states[:, n:] %= transactions.PERIOD
        return states


def _tied(forms: Sequence[Form], first: set[Var]) -> list[set[Var]]:
    """Group variables so that each term of each form depends on variables of one group only."""
    groups = [first]
    for term in dict.fromkeys(term for form in forms for term in form.terms):
        variables = set(variables_in(term))
        for group in [each for each in groups if each & variables]:
            groups.remove(group)
            variables |= group
        groups.append(variables)
    return groups


def _reach(part: tuple[Contribution, Integers, Integers]) -> int:
    return int((part[2] - part[1]).max(initial=0))


def _merged(states: Integers, counts: Integers) -> tuple[Integers, Integers]:
    """Return each state once, with the sum of its counts."""
    if len(states) < 2:
        return states, counts
    low = states.min(axis=0)
    spans = [int(span) + 1 for span in states.max(axis=0) - low]
    if math.prod(spans) >= 1 << 62:
        unique, inverse = np.unique(states, axis=0, return_inverse=True)
        total = np.zeros(len(unique), np.int64)
        np.add.at(total, inverse.reshape(-1), counts)
        return unique, total
    codes = (states - low) @ np.cumprod([1, *spans[:-1]])
    order = np.argsort(codes, kind="stable")
    codes = codes[order]
    is_first = np.empty(len(codes), np.bool_)
    is_first[0] = True
    np.not_equal(codes[1:], codes[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    return states[order[starts]], np.add.reduceat(counts[order], starts)


def _masks(
    guards: Sequence[Predicate],
    known: Mapping[Test, Truth],
    active: Truth,
    shape: tuple[int, ...],
) -> tuple[Truth, Truth]:
    """Return which threads get somewhere surely, and which may."""
    surely = maybe = np.broadcast_to(active, shape)
    for guard in guards:
        holds, may_hold = truth(guard, known)
        surely, maybe = surely & holds, maybe & may_hold
    return surely, maybe


def _cost(
    mask: Truth,
    address: Integers | None,
    access: Access | None,
    weights: Integers,
    *,
    is_most: bool,
) -> Tally:
    """Return the sum of what accesses cost.

    Parameters
    ----------
    mask : array ``(states, warps, lanes)``
        Which threads take part.
    address
        The addresses, of the same shape; None if they are not known.
    access
        The access, if it is one.
    weights : array ``(states, 1)``
        How often each state occurs.
    is_most
        Whether addresses that are not known are all different, rather than all equal.
    """

    def total(each: Integers | Truth) -> int:
        return int((each * weights).sum())

    active = np.count_nonzero(mask, axis=-1)
    requests, lanes = total(active > 0), total(active)
    if access is None or not access.space:
        return Tally(requests, lanes)
    ideal = transactions.ideal_wavefronts(mask, access.bytes)
    if address is None:
        worst = lanes if is_most else total(ideal)
        if access.space == "global":
            return Tally(requests, lanes, sectors=worst, lines=worst)
        return Tally(requests, lanes, wavefronts=worst, ideal_wavefronts=total(ideal))
    if access.space == "global":
        sectors = transactions.sectors(address, mask, access.bytes)
        lines = transactions.sectors(address, mask, access.bytes, transactions.LINE_BYTES)
        return Tally(requests, lanes, sectors=total(sectors), lines=total(lines))
    passes, ideal = transactions.wavefronts(address, mask, access.bytes)
    return Tally(requests, lanes, wavefronts=total(passes), ideal_wavefronts=total(ideal))
