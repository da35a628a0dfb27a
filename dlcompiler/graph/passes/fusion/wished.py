"""Find the calls that wishes are about, also after passes replaced them; check what became of them.

A pass names the call that gives the value of a replaced one ``bn``, and what it makes beside it
``bn.scale``. All these are *parts* of ``bn``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dlcompiler.errors import GraphError
from dlcompiler.graph.decisions import Wish
from dlcompiler.graph.ir import Call, Function, Module, Node, Op, Tuple, TupleGetItem, post_order


@dataclass(frozen=True, slots=True)
class Wished:
    """A wish with the calls that it is about."""

    wish: Wish
    first: tuple[Call, ...]
    """The parts of its first call, in the order in which they are computed."""
    second: tuple[Call, ...]

    @property
    def apart(self) -> Iterator[tuple[Node, Node]]:
        """All pairs of parts that must be in different kernels."""
        return ((a, b) for a in self.first for b in self.second)

    def chain(self) -> list[tuple[Node, Node]]:
        """Return the producers and consumers that must be fused, from the first call to the second.

        The value of the first call goes through parts of the second one. If it does not, the chain
        is the pair itself, and fusing it is refused.
        """
        a, b = (_named(name, parts) for name, parts in self._sides)
        way = [b]
        while a not in (below := operands(way[-1])):
            inner = [
                part for part in self.second if part in below and _reaches(part, a, self.second)
            ]
            if not inner:
                return [(a, b)]
            way.append(inner[0])
        way.append(a)
        return list(zip(reversed(way[1:]), reversed(way[:-1]), strict=True))

    @property
    def _sides(self) -> tuple[tuple[str, Sequence[Call]], ...]:
        return tuple(zip(self.wish.subject, (self.first, self.second), strict=True))


def wished(module: Module) -> list[Wished]:
    """Return the wishes of a module with their calls.

    Raises
    ------
    GraphError
        If an earlier pass removed a call.
    """
    known = module.calls() if module.wishes else {}
    found = []
    for wish in module.wishes:
        first, second = (tuple(_parts(name, wish, known)) for name in wish.subject)
        for name, parts in zip(wish.subject, (first, second), strict=True):
            if not parts or (wish.kind == "fuse" and name not in known):
                raise _gone(name, wish, module)
        found.append(Wished(wish, first, second))
    return found


def check_honoured(wishes: Sequence[Wished], after: Module) -> None:
    """Refuse wishes that fusing did not honour: about kernels of before, or of other functions.

    Raises
    ------
    GraphError
        If there is one.
    """
    places = _places(after) if wishes else {}
    for each in wishes:
        wish = each.wish
        # An annotation that stops fusion is in no kernel.
        pairs = each.apart if wish.kind == "keep apart" else iter(each.chain())
        for a, b in pairs:
            names = [call.name for call in (a, b) if isinstance(call, Call)]
            at = [places[name] for name in names if name in places]
            if len(at) == 2 and (at[0][1] is at[1][1]) != (wish.kind == "fuse"):
                raise _too_late(wish, names, [function for function, _ in at])


def operands(call: Node) -> set[Node]:
    """Return the values that a call uses, directly or as fields of tuples."""
    found: set[Node] = set()
    stack: list[Node] = list(call.args) if isinstance(call, Call) else []
    while stack:
        match stack.pop():
            case Tuple(fields):
                stack += fields
            case TupleGetItem(value):
                stack.append(value)
            case node:
                found.add(node)
    return found


def _parts(name: str, wish: Wish, known: Mapping[str, Call]) -> Iterator[Call]:
    """Yield the calls that a name of a wish stands for."""
    (other,) = (each for each in wish.subject if each != name)
    for own, call in known.items():
        is_part = own.startswith(f"{name}.") and own not in wish.beside
        # b of the wish may itself be named like a part of a.
        is_of_other = own == other or (own.startswith(f"{other}.") and len(other) > len(name))
        if own == name or (is_part and not is_of_other):
            yield call


def _named(name: str, calls: Sequence[Call]) -> Call:
    return next(call for call in calls if call.name == name)


def _reaches(call: Call, producer: Node, through: Sequence[Call]) -> bool:
    """Tell whether a call uses a producer, directly or through given calls."""
    stack, seen = [call], {call}
    while stack:
        below = operands(stack.pop())
        if producer in below:
            return True
        new = [each for each in through if each in below and each not in seen]
        seen.update(new)
        stack += new
    return False


def _places(module: Module) -> dict[str, tuple[str, Node]]:
    """Return for each call the name of its function, and its kernel."""
    found: dict[str, tuple[str, Node]] = {}
    for name, function in module.functions.items():
        for node in post_order(function):
            if isinstance(node, Function) and node.is_kernel:
                for call in post_order(node.body):
                    if isinstance(call, Call) and isinstance(call.op, Op):
                        found[call.name] = name, node
    return found


def _operation(wish: Wish) -> str:
    return f"{wish.kind} {' and '.join(wish.subject)}"


def _gone(name: str, wish: Wish, module: Module) -> GraphError:
    """Return the error for a call that is not there any more, with what was decided about it."""
    about = module.decisions(about=name)
    return GraphError(
        _operation(wish), f"there is no call {name} any more",
        because=f"{about[-1].made_by} has {about[-1].verdict} it: {about[-1].reason}"
        if about
        else None,
        hint="an earlier pass replaced it; the names are those of module.decisions()",
    )  # fmt: skip


def _too_late(wish: Wish, names: Sequence[str], functions: Sequence[str]) -> GraphError:
    """Return the error for two calls whose kernels this pass does not make."""
    (a, b), (f, g) = names, functions
    if f != g:
        because = f"{a} is in the function {f}, and {b} in {g}"
        return GraphError(_operation(wish), "a kernel is part of one function", because=because)
    return GraphError(
        _operation(wish), "they are fused already", because=f"{f} consists of kernels",
        hint="wish before fuse_ops",
    )  # fmt: skip
