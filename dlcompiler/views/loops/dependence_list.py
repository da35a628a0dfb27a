"""List the dependences of a stage: one entry for each pair of accesses that must keep its order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

from dlcompiler.analysis import Dependence, dependences_of
from dlcompiler.analysis.accesses import Access, Loop
from dlcompiler.analysis.dependences import DependenceKind
from dlcompiler.analysis.distance_vectors import DistanceVector, common_loops
from dlcompiler.analysis.races import format_element, format_values
from dlcompiler.ir import Let, PrimFunc, Seq, Stmt, Store, format_expr
from dlcompiler.views.loops.line_keys import keys_of
from dlcompiler.views.loops.loop_tree import LoopTree

_KINDS: tuple[DependenceKind, ...] = ("flow", "anti", "output")


@dataclass(frozen=True)
class Entry:
    """Dependences that differ only in their kind: the same accesses, loops and distances."""

    kinds: tuple[DependenceKind, ...]
    buffer: str
    source: str
    """The access that comes first, as text: ``C[i, j]``."""
    sink: str
    loop: Loop | None
    """The loop that carries them; None for a dependence in one iteration."""
    loops: tuple[Loop, ...]
    """The loops of the vector."""
    vector: DistanceVector | None
    is_reduction: bool
    """Whether both accesses are of the updates of a reduction, which may have many statements."""
    is_unordered: bool
    """Whether the updates may provably run in any order, such as those of a sum."""
    members: tuple[Dependence, ...]

    @property
    def doubt(self) -> str:
        """Why it is not known whether there is a dependence; '' if there is one."""
        doubts = [each.doubt for each in self.members]
        return doubts[0] if all(doubts) else ""

    @property
    def moving(self) -> tuple[Loop, ...]:
        """The loops in which the nearest source and sink differ."""
        nearest = (self.vector.nearest if self.vector else None) or ()
        return tuple(loop for loop, n in zip(self.loops, nearest, strict=False) if n)

    @property
    def key(self) -> str | None:
        """Key in the loop tree of the loop that carries them."""
        return key_of(self.loop) if self.loop else None

    @property
    def kind(self) -> str:
        """The kinds as text: ``flow, anti, output (reduction)``."""
        return ", ".join(self.kinds) + (" (reduction)" if self.is_reduction else "")

    @property
    def distance(self) -> str:
        """The distance vector as text: ``(0, 0, <)``."""
        return str(self.vector) if self.vector else "not known"

    @property
    def nearest(self) -> str:
        """The nearest distance as text: ``(0, 0, 1)``; '' if it is not known."""
        nearest = self.vector.nearest if self.vector else None
        return f"({', '.join(map(str, nearest))})" if nearest else ""

    @property
    def example(self) -> str:
        """The nearest two iterations that access one element: ``C[0, 0] at k=0, and at k=1``."""
        found = self.vector.example if self.vector else None
        if found is None:
            return ""
        places = [
            format_values({loop: n for loop, n in values.items() if loop in self.loops})
            for values in (found.first, found.second)
        ]
        element = format_element(self.members[0].buffer, found.element)
        return f"{element} at {places[0]}, and at {places[1]}"

    @property
    def words(self) -> str:
        """The dependence in a sentence."""
        if self.loop is None:
            return _within(self)
        name = self.loop.var.name
        did, done = ("updated", "updated again") if self.is_reduction else _verbs(self.members[0])
        other = "" if self.sink == self.source else f" as {self.sink}"
        if self.doubt:
            return f"{self.source} may touch what a later iteration of {name} touches: {self.doubt}"
        nearest = self.vector.nearest if self.vector else None
        if nearest is None:
            return f"{self.source} {did} in an iteration of {name} is {done}{other} in a later one"
        apart = [(loop, n) for loop, n in zip(self.loops, nearest, strict=True) if n]
        here = ", ".join(loop.var.name for loop, _ in apart)
        there = ", ".join(f"{loop.var.name} {'+' if n > 0 else '-'} {abs(n)}" for loop, n in apart)
        text = f"{self.source} {did} at {here} is {done}{other} at "
        if self.vector is None or self.vector.is_constant:
            return f"{text}{there}"
        if self.is_reduction and len(apart) == 1:  # each update is followed by the next one
            return f"{text}{there}, and at later iterations of {name}"
        distance = self.vector.of(self.loop)
        later = f"{name} + {distance}" if isinstance(distance, int) else f"a later {name}"
        return f"{text}{later}; the nearest at {there}"


def dependence_list(func: PrimFunc, tree: LoopTree, stage: str) -> list[Entry]:
    """Return the dependences of a stage, those that loops carry first, outermost loop first.

    Parameters
    ----------
    func
        The program as scheduled: ``lower(s, args, simple_mode=True)``.
    tree
        The loop nest of the same state: it knows which loops are of a reduction.
    stage
        Name of the stage.
    """
    reductions = {row["key"] for row in tree["rows"] if row["axis"] == "reduce"}
    groups: dict[Hashable, list[Dependence]] = {}
    for each in dependences_of(func, stage):
        groups.setdefault(_group(each), []).append(each)
    entries = [_entry(members, reductions) for members in groups.values()]
    return sorted(entries, key=lambda entry: (entry.loop is None, _depth(entry)))


def _group(each: Dependence) -> Hashable:
    """Return a key that is equal for the dependences of one entry."""
    vector = each.vector and (each.vector.distances, each.vector.nearest)
    texts = access_text(each.source), access_text(each.sink)
    if each.loop is None:
        return each.buffer, vector, texts, each.kind == "anti"
    statements = each.source.statement, each.sink.statement
    return each.buffer, vector, tuple(sorted(texts)), each.loop, statements


def access_text(access: Access) -> str:
    """Return an access as text: ``A[i.outer*32 + i.inner, k]``."""
    return f"{access.buffer.name}[{', '.join(map(format_expr, access.indices)) or '()'}]"


def key_of(loop: Loop) -> str:
    """Return the key of a loop in the loop tree; its name, if it is not there."""
    return next((key for key in keys_of(loop.statement) if "/" in key), loop.var.name)


def _entry(members: Sequence[Dependence], reductions: Iterable[str]) -> Entry:
    first = min(members, key=lambda each: _KINDS.index(each.kind))
    kinds = {each.kind for each in members}
    loops = common_loops(first.source, first.sink)
    varying = _varying(first.vector, loops)
    is_within = {key_of(loop) for loop in varying} <= set(reductions)
    return Entry(
        tuple(kind for kind in _KINDS if kind in kinds),
        first.buffer.name,
        access_text(first.source),
        access_text(first.sink),
        first.loop,
        loops,
        first.vector,
        first.loop is not None and (first.is_reduction or (is_within and _is_one_update(first))),
        all(each.is_reduction for each in members),
        tuple(sorted(members, key=lambda each: _KINDS.index(each.kind))),
    )


def _is_one_update(dependence: Dependence) -> bool:
    """Tell whether both accesses are of the update of one stage, which may have many statements."""
    first, second = (_updated(each.statement) for each in (dependence.source, dependence.sink))
    return first is not None and first == second


def _updated(statement: Stmt) -> str | None:
    """Return the stage that a statement updates; None for one that gives the first value."""
    while isinstance(statement, Let | Seq):  # the next values of a tuple are computed before
        statement = statement.body if isinstance(statement, Let) else statement.statements[0]
    if not isinstance(statement, Store) or not statement.origin:
        return None
    is_first = any(ref.axis.startswith("(") for ref in statement.origin)
    return None if is_first else statement.origin[0].stage


def _varying(vector: DistanceVector | None, loops: Sequence[Loop]) -> list[Loop]:
    """Return the loops whose distance is not always 0."""
    if vector is None:
        return list(loops)
    return [loop for loop, n in zip(loops, vector.distances, strict=True) if n != 0]


def _depth(entry: Entry) -> int:
    return entry.loops.index(entry.loop) if entry.loop else len(entry.loops)


def _verbs(dependence: Dependence) -> tuple[str, str]:
    did = "written" if dependence.source.is_write else "read"
    done = "written" if dependence.sink.is_write else "read"
    return did, f"{done} again" if did == done else done


def _within(entry: Entry) -> str:
    did, done = _verbs(entry.members[0])
    names = ", ".join(loop.var.name for loop in entry.loops)
    other = "" if entry.sink == entry.source else f" as {entry.sink}"
    may = "may be" if entry.doubt else "is"
    return f"{entry.source} {may} {did}, then {done}{other}, in the same iteration of {names}"
