"""Build the loop nests of a schedule state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    Allocate,
    Axis,
    Barrier,
    Buffer,
    Expr,
    Extent,
    For,
    If,
    Let,
    Load,
    PrimFunc,
    Reduce,
    StepRef,
    Stmt,
    Store,
    TensorLoad,
    Var,
    binary,
    combine,
    compare,
    extent_binary,
    extent_expr,
    free_vars,
    is_in_block,
    logical,
    rewrite,
    seq,
    substitute,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.schedule import AttachedAt, StageBounds, StageState, State, infer_bounds
from dlcompiler.schedule.bounds import knobs_of, size_symbols
from dlcompiler.schedule.inlining import bodies
from dlcompiler.schedule.placement import placed
from dlcompiler.schedule.state import buffer_name, step_ref
from dlcompiler.schedule.threads import is_shared, threads_of_block
from dlcompiler.te import ComputeOp, Tensor, symbols_of
from dlcompiler.te.access import requirements

INIT = "(init)"


def build_nests(state: State, args: Sequence[Tensor | Var], name: str) -> PrimFunc:
    """Build the program of a schedule state.

    Parameters
    ----------
    state
        A state that owes nothing but what is settled here.
    args
        The tensors that become parameters: all inputs and outputs; symbols passed as numbers.
    name
        Name of the function.

    Returns
    -------
    PrimFunc
        One loop nest for each stage that has one, attached stages inside their consumer's.
    """
    return _Builder(state, args, name).build()


@dataclass(frozen=True)
class _Inside:
    """What runs inside the loops: the initialisation of a reduction, and its update."""

    init: Stmt | None
    update: Stmt


class _Builder:
    def __init__(self, state: State, args: Sequence[Tensor | Var], name: str) -> None:
        self.state = state = placed(state)
        self.name = name
        self.bounds = infer_bounds(state)
        self.bodies = bodies(state)
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        self.buffers = {tensor: self.param(tensor) for tensor in tensors}
        self.params = tuple(arg if isinstance(arg, Var) else self.buffers[arg] for arg in args)
        self.axes: dict[StepRef, frozenset[StepRef]] = {}
        self.shared: list[StageState] = []
        """Stages in memory that a block shares, until the loops of its threads are complete."""

    def build(self) -> PrimFunc:
        roots: list[StageState] = []
        for stage in self.state.stages:
            if stage.is_placeholder or stage.is_inlined:
                continue
            for tensor in stage.tensors:
                if tensor not in self.buffers:
                    self.buffers[tensor] = self.internal_buffer(stage, tensor)
            if not isinstance(stage.attachment, AttachedAt):
                roots.append(stage)
        body = self.with_allocations(roots, seq(self.nest(stage) for stage in roots))
        outputs = tuple(
            buffer
            for tensor, buffer in self.buffers.items()
            if buffer in self.params and not self.state.producer_of(tensor).is_placeholder
        )
        knobs = knobs_of(self.state)
        of_tensors = symbols_of(tensor for stage in self.state.stages for tensor in stage.tensors)
        symbols = tuple(dict.fromkeys((*of_tensors, *knobs)))
        sizes = frozenset(size_symbols(self.state))
        checks = tuple(
            check
            for stage in self.state.stages
            if isinstance(stage.op, ComputeOp)
            for check in requirements(stage.op, sizes)
        )
        factors = (
            (compare("ge", knob, 1), f"the factor {knob.name} is too small") for knob in knobs
        )
        checks = (*checks, *factors)
        return PrimFunc(self.name, self.params, outputs, body, self.axes, symbols, checks)

    def param(self, tensor: Tensor) -> Buffer:
        stage = self.state.producer_of(tensor)
        if isinstance(stage.attachment, AttachedAt) or stage.is_inlined:
            raise ScheduleError(
                f"lower {self.name}",
                f"the argument {tensor.name} is not stored as a whole",
                hint=f"call s[{tensor.name}].compute_root(), or leave it out of the arguments",
            )
        return Buffer(buffer_name(stage, tensor), tensor.shape, tensor.dtype)

    def internal_buffer(self, stage: StageState, tensor: Tensor) -> Buffer:
        region = self.bounds.stages[stage.name].region
        shape = tuple(span.extent for span in region)
        strides = aligned_strides(stage, shape) if stage.alignments else ()
        is_private = stage.scope == "global" and threads_of_block(self.state, stage)
        scope = "local" if is_private else stage.scope
        return Buffer(buffer_name(stage, tensor), shape, tensor.dtype, scope, strides)

    def with_allocations(self, stages: Sequence[StageState], body: Stmt) -> Stmt:
        for stage in reversed(stages):
            for tensor in reversed(stage.tensors):
                buffer = self.buffers[tensor]
                if buffer not in self.params:
                    origin = (StepRef("", stage.name),)
                    body = Allocate(buffer, body, origin, bool(stage.double_buffered_by))
        return body

    # -- one stage -----------------------------------------------------------------------------

    def nest(self, stage: StageState) -> Stmt:
        """Return the loops of a stage with all that is attached to them."""
        bounds = self.bounds.stages[stage.name]
        bodies = self.bodies[stage.name]
        values = {axis.var: value for axis, value in bounds.values.items()}
        targets = [self.target(stage, bounds, tensor) for tensor in stage.tensors]
        head = bodies[0]
        inner_guards: tuple[Expr, ...] = ()
        if self.has_barriers(stage):  # all threads must come to them: guards go behind
            inner_guards, bounds = bounds.guards, replace(bounds, guards=())
        if not isinstance(head, Reduce):
            parts = zip(stage.tensors, targets, bodies, strict=True)
            store = seq(
                self.store(stage, tensor, target, self.expr(body, values), "", stage.leaves)
                for tensor, target, body in parts
            )
            store = _under(inner_guards, store)
            return self.loops(stage, bounds, stage.leaves, (), _Inside(None, store))
        first = next(n for n, leaf in enumerate(stage.leaves) if leaf.kind == "reduce")
        shared, inner = stage.leaves[:first], stage.leaves[first:]
        update = _under(inner_guards, self.update(stage, targets, head, values))
        start = [self.expr(expr, values) for expr in head.start]
        reduced = {bounds.loop_vars[leaf] for leaf in inner if leaf.kind == "reduce"}
        needed = tuple(guard for guard in inner_guards if not loop_vars_of(guard) & reduced)
        init = self.init_nest(stage, bounds, targets, start, inner, needed)
        main = self.loops(stage, bounds, inner, shared, _Inside(None, update))
        return self.loops(stage, bounds, shared, (), _Inside(init, main))

    def target(self, stage: StageState, bounds: StageBounds, tensor: Tensor) -> tuple[Expr, ...]:
        """Return the indices that the stage stores to: relative to its buffer's region."""
        values = [bounds.values[axis] for axis in stage.op.axis]
        return self.shift(tensor, values)

    def shift(self, tensor: Tensor, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        stage = self.state.producer_of(tensor)
        if self.buffers[tensor] in self.params or stage.is_placeholder:
            return tuple(indices)
        region = self.bounds.stages[stage.name].region
        return tuple(
            binary("sub", index, span.first.to_expr())
            for index, span in zip(indices, region, strict=True)
        )

    def expr(self, body: Expr, values: dict[Var, Expr]) -> Expr:
        """Return a body over loop variables and buffers."""

        def rule(node: Node) -> Node:
            if isinstance(node, Var):
                return values.get(node, node)
            if isinstance(node, TensorLoad):
                assert isinstance(node.tensor, Tensor)
                return Load(self.buffers[node.tensor], self.shift(node.tensor, node.indices))
            return node

        return rewrite(body, rule)

    def update(
        self,
        stage: StageState,
        targets: Sequence[tuple[Expr, ...]],
        body: Reduce,
        values: dict[Var, Expr],
    ) -> Stmt:
        """Return what combines one more point with the results so far."""
        pairs = list(zip(stage.tensors, targets, strict=True))
        old = [Load(self.buffers[tensor], target) for tensor, target in pairs]
        new = combine(body.reducer, old, [self.expr(value, values) for value in body.values])
        if len(new) > 1:  # each result may depend on all old ones, so none is stored too early
            fresh = [Var(f"{self.buffers[t].name}.next", t.dtype) for t in stage.tensors]
        else:
            fresh = []
        update = seq(
            self.store(stage, tensor, target, value, "", stage.leaves)
            for (tensor, target), value in zip(pairs, fresh or new, strict=True)
        )
        for var, value in zip(reversed(fresh), reversed(new), strict=False):
            update = Let(var, value, update)
        if body.condition is not None:
            update = If(self.expr(body.condition, values), update)
        return update

    def store(
        self,
        stage: StageState,
        tensor: Tensor,
        target: tuple[Expr, ...],
        value: Expr,
        part: str,
        leaves: Sequence[Axis],
    ) -> Store:
        ref = StepRef("", stage.name, part)
        self.axes[ref] = frozenset(step_ref(self.state, stage, leaf) for leaf in leaves)
        joined = self.bounds.stages[stage.name].joined
        run = (step_ref(self.state, stage, leaf) for leaf in leaves if leaf in joined)
        return Store(self.buffers[tensor], target, value, (ref, *run))

    def init_nest(
        self,
        stage: StageState,
        bounds: StageBounds,
        targets: Sequence[tuple[Expr, ...]],
        start: Sequence[Expr],
        inner: Sequence[Axis],
        needed: tuple[Expr, ...],
    ) -> Stmt:
        """Return the loops that set the elements to what the reduction starts from."""
        data = [leaf for leaf in stage.leaves if leaf.kind == "data"]
        fresh: dict[Var, Expr] = {}
        for leaf in inner:
            if leaf.kind == "data":
                old = bounds.loop_vars[leaf]
                fresh[old] = Var(f"{old.name}.init")
        body: Stmt = seq(
            self.store(stage, tensor, target, value, INIT, data)
            for tensor, target, value in zip(stage.tensors, targets, start, strict=True)
        )
        kept = {bounds.loop_vars[leaf] for leaf in inner if leaf.kind == "data"}
        reduced = {bounds.loop_vars[leaf] for leaf in inner if leaf.kind == "reduce"}
        guards = [
            guard
            for guard in bounds.guards
            if loop_vars_of(guard) & kept and not loop_vars_of(guard) & reduced
        ]
        body = _under((*needed, *guards), body)
        for leaf in reversed(inner):
            if leaf.kind == "data":
                body = self.loop(stage, bounds, leaf, body)
        return _rename(body, fresh)

    def loop(self, stage: StageState, bounds: StageBounds, leaf: Axis, body: Stmt) -> For:
        return For(
            bounds.loop_vars[leaf],
            extent_expr(bounds.extents[leaf]),
            stage.kind(leaf),
            body,
            (step_ref(self.state, stage, leaf),),
            tuple(stage.pragmas.get(leaf, {}).items()),
        )

    def loops(
        self,
        stage: StageState,
        bounds: StageBounds,
        leaves: Sequence[Axis],
        outside: Sequence[Axis],
        inside: _Inside,
    ) -> Stmt:
        """Wrap `inside` in loops, each with its guards and the stages attached to it.

        `outside` are loops of the same stage further out: conditions that only depend on them
        are tested there.
        """
        opened = {bounds.loop_vars[leaf] for leaf in outside}
        known = set(opened) | set(bounds.enclosing)
        body = inside.update if inside.init is None else seq((inside.init, inside.update))
        if not outside:
            loose = [
                guard for guard in bounds.guards if loop_vars_of(guard) <= set(bounds.enclosing)
            ]
        else:
            loose = []
        threads = [leaf for leaf in stage.leaves if is_in_block(stage.kind(leaf))]
        outermost = threads[0] if threads and not isinstance(stage.attachment, AttachedAt) else None
        for n in reversed(range(len(leaves))):
            leaf = leaves[n]
            body = self.with_attached(stage, leaf, body)
            var = bounds.loop_vars[leaf]
            before = known | {bounds.loop_vars[other] for other in leaves[:n]}
            ready = [
                guard
                for guard in bounds.guards
                if var in loop_vars_of(guard) and loop_vars_of(guard) <= before | {var}
            ]
            if leaf in bounds.joined:
                continue  # the threads that run it are there already
            body = self.loop(stage, bounds, leaf, _under(ready, body))
            if leaf is outermost:
                body = self.with_allocations(self.shared, body)
                self.shared = []
        return _under(loose, body)

    def with_attached(self, stage: StageState, leaf: Axis, body: Stmt) -> Stmt:
        attached = [
            other
            for other in self.state.stages
            if isinstance(other.attachment, AttachedAt)
            and other.attachment.stage == stage.name
            and other.attachment.axis is leaf
        ]
        if not attached:
            return body
        together = [other for other in attached if self.is_of_block(other)]
        nests: list[Stmt] = []
        fresh: set[Tensor] = set()  # written by other threads since the last barrier
        for other in attached:
            is_first = other in together[:1]  # what it overwrites must have been read by all
            if is_first or fresh.intersection(other.op.input_tensors):
                nests.append(Barrier())
                fresh.clear()
            nests.append(self.nest(other))
            if other in together:
                fresh.update(other.tensors)
        if fresh:
            nests.append(Barrier())
        self.shared += together
        private = [other for other in attached if other not in together]
        return self.with_allocations(private, seq((*nests, body)))

    def is_of_block(self, stage: StageState) -> bool:
        """Tell whether the threads of a block compute a stage together."""
        return is_shared(stage) and threads_of_block(self.state, stage)

    def has_barriers(self, stage: StageState) -> bool:
        """Tell whether threads meet inside the loops of a stage."""
        inside = [
            other
            for other in self.state.stages
            if isinstance(other.attachment, AttachedAt) and other.attachment.stage == stage.name
        ]
        return any(self.is_of_block(other) or self.has_barriers(other) for other in inside)


def _under(guards: Sequence[Expr], body: Stmt) -> Stmt:
    """Return a statement that runs where all guards hold."""
    return If(logical("and", *guards), body) if guards else body


def loop_vars_of(guard: Expr) -> set[Var]:
    """Return the loop variables that a guard depends on: symbols are known everywhere."""
    return {var for var in free_vars(guard) if not var.is_symbol}


def aligned_strides(stage: StageState, shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the strides of a buffer of which some dimensions are padded."""
    strides: list[Extent] = []
    step: Extent = 1
    for axis, extent in reversed(list(zip(stage.op.axis, shape, strict=True))):
        if axis in stage.alignments:
            factor, offset = stage.alignments[axis]
            missing = extent_binary("sub", offset, step)
            step = extent_binary("add", step, extent_binary("floormod", missing, factor))
        strides.append(step)
        step = extent_binary("mul", step, extent)
    return tuple(reversed(strides))


def _rename(body: Stmt, fresh: dict[Var, Expr]) -> Stmt:
    """Give the loops of an initialisation their own variables."""
    body = substitute(body, fresh)

    def rule(node: Node) -> Node:
        if isinstance(node, For) and isinstance(new := fresh.get(node.var), Var):
            return replace(node, var=new)
        return node

    return rewrite(body, rule)
