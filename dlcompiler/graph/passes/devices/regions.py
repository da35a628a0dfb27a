"""Regions of calls for a device: as large as they can be without waiting for each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dlcompiler.graph.ir import Node


@dataclass(eq=False, slots=True)
class Region:
    """Nodes that are merged, with the regions and nodes that they depend on."""

    members: list[Node]
    is_on_device: bool
    after: set[Region] = field(default_factory=set)
    """What uses its values."""
    before: set[Region] = field(default_factory=set)
    """What it uses."""


def regions_of(
    order: Sequence[Node], operands: Mapping[Node, Sequence[Node]], on_device: set[Node],
    may_merge: Mapping[Node, object],
) -> list[Region]:  # fmt: skip
    """Return the regions of a device.

    Parameters
    ----------
    order : sequence of Node
        All nodes, operands first.
    operands : mapping
        The nodes that each one uses.
    on_device : set of Node
        Nodes that the device can compute.
    may_merge : mapping
        Nodes of a region have equal values here.

    Notes
    -----
    Two regions are merged along an edge unless a path leads from one to the other through a third:
    the merged region would then wait for its own result.
    """
    at = {node: Region([node], node in on_device) for node in order}
    for node in order:
        for below in operands[node]:
            at[below].after.add(at[node])
            at[node].before.add(at[below])
    for node in order:
        for below in operands[node]:
            a, b = at[below], at[node]
            both = a.is_on_device and b.is_on_device and a is not b
            if both and may_merge[below] == may_merge[node] and not _meet_outside(a, b):
                for moved in a.members:
                    at[moved] = b
                _merge(a, b)
    return list(dict.fromkeys(at[node] for node in order if node in on_device))


def _meet_outside(a: Region, b: Region) -> bool:
    """Tell whether a path leads from a region to another through a third."""
    stack = [after for after in a.after if after is not b]
    seen: set[Region] = set()
    while stack:
        current = stack.pop()
        if current is b:
            return True
        if current not in seen:
            seen.add(current)
            stack += current.after
    return False


def _merge(a: Region, b: Region) -> None:
    """Move everything of one region to another."""
    b.members = [*a.members, *b.members]
    for beside in a.after:
        beside.before.discard(a)
        if beside is not b:
            beside.before.add(b)
            b.after.add(beside)
    for beside in a.before:
        beside.after.discard(a)
        if beside is not b:
            beside.after.add(b)
            b.before.add(beside)
    b.before.discard(a)
    b.after.discard(a)
