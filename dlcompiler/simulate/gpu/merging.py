"""Merge loads of shared memory as NVIDIA's compiler of CUDA C does.

Where a loop is unrolled whose iterations load neighbouring elements, one instruction loads up to 16
bytes, if they begin at a multiple of their size. Arrays in shared memory do; parameters of a kernel
may begin anywhere, so that loads of global memory stay as they are.

**Source:** machine code of the products in `dlcompiler.bench.gpu_ladders` (sm_86, NVRTC 12.9).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dlcompiler.ir import Var
from dlcompiler.simulate.gpu.forms import Form, Term, variables_of
from dlcompiler.simulate.gpu.populations import Access, Place

LONGEST = 16
"""Most bytes that a thread loads at once; [byte]."""


def merged(place: Place, access: Access, unrolled: Collection[Var]) -> tuple[Place, Access]:
    """Return an access with the place where it is executed, merged if that is possible.

    Parameters
    ----------
    place
        The loops and conditions around it.
    access
        A load of shared memory.
    unrolled
        The variables of loops that are unrolled.
    """
    terms = {term: n for term, n in access.address.terms.items() if isinstance(term, Var)}
    if len(terms) < len(access.address.terms):
        return place, access
    for var, factor in terms.items():
        if var not in unrolled or factor != access.bytes or var not in place.extents:
            continue
        if any(var in variables_of(guard) for guard in place.guards):
            continue
        others = (access.address.constant, *(n for term, n in terms.items() if term != var))
        for count in (4, 2):
            size = count * access.bytes
            is_whole = place.extents[var] % count == 0 and not any(n % size for n in others)
            if size <= LONGEST and is_whole:
                return _together(place, access, terms, (var, count))
    return place, access


def _together(
    place: Place, access: Access, terms: Mapping[Var, int], step: tuple[Var, int]
) -> tuple[Place, Access]:
    """Return an access to some neighbouring elements at once, along a variable."""
    var, count = step
    wide = Var(var.name)
    extents = {each: extent for each, extent in place.extents.items() if each != var}
    factors: dict[Term, int] = {each: factor for each, factor in terms.items() if each != var}
    address = Form(access.address.constant, {**factors, wide: count * terms[var]})
    inside = Place({**extents, wide: place.extents[var] // count}, place.guards, place.choices)
    return inside, Access(access.space, address, count * access.bytes)
