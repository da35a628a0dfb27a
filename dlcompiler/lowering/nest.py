"""Build the loop nests of a schedule state.

Long because all kinds of stages are built by one class, which holds what they share: the bounds,
the buffers made so far, and the memory of a block until the loops of its threads are complete.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    SHARED,
    WARP,
    Allocate,
    Axis,
    Barrier,
    Buffer,
    Expr,
    ExternCall,
    For,
    If,
    Load,
    Origin,
    PrimFunc,
    Reduce,
    StepRef,
    Stmt,
    Store,
    TensorHandle,
    TensorLoad,
    Var,
    Window,
    binary,
    combine,
    compare,
    extent_expr,
    index_const,
    is_in_block,
    rewrite,
    seq,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.lowering.barrier_placement import has_barriers, is_cooperative, tensors_read
from dlcompiler.lowering.cross_thread import PART, Assigner, Place, accumulate, parts_of
from dlcompiler.lowering.index_checks import IndexChecks
from dlcompiler.lowering.pieces import (
    INIT,
    Inside,
    PendingAllocation,
    loop_vars_of,
    rename,
    under,
    with_allocations,
)
from dlcompiler.lowering.tensorized import tensorized_nest
from dlcompiler.schedule import AttachedAt, StageBounds, StageState, State, infer_bounds
from dlcompiler.schedule.inference.bounds import knobs_of, size_symbols
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.inference.recurrences import hosts, is_update, storage_aliases
from dlcompiler.schedule.inference.rolling import moving_window
from dlcompiler.schedule.inference.strides import aligned_strides
from dlcompiler.schedule.inference.threads import (
    nest_order,
    reduced_by_threads,
    scope_of,
    threads_around,
    threads_of_block,
    uses_threads,
)
from dlcompiler.schedule.state import buffer_name, is_scan, step_ref
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import ExternOp, ScanOp, Tensor, symbols_of
from dlcompiler.te.bodies import with_buffers
from dlcompiler.te.extern.checks import with_checks
from dlcompiler.te.extern.zeros import with_zeros
from dlcompiler.te.recurrences import requirements_of


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


class _Builder:
    def __init__(self, state: State, args: Sequence[Tensor | Var], name: str) -> None:
        self.state = state = placed(state)
        self.name = name
        self.bounds = infer_bounds(state)
        self.bodies = bodies(state)
        self.storage_aliases = storage_aliases(state)
        """Tensors that alias the buffer of another tensor, with that tensor."""
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        self.buffers = {tensor: self.param(tensor) for tensor in tensors}
        self.params = tuple(arg if isinstance(arg, Var) else self.buffers[arg] for arg in args)
        self.axes: dict[StepRef, frozenset[StepRef]] = {}
        self.shared: list[PendingAllocation] = []
        """Memory shared by threads; allocated around their loops once these are complete."""

    def build(self) -> PrimFunc:
        roots: list[StageState] = []
        for tensor, result in self.storage_aliases.items():
            if result not in self.buffers:
                self.buffers[result] = self.internal_buffer(self.state.producer_of(result), result)
            self.buffers[tensor] = self.buffers[result]
        for stage in self.state.stages:
            if stage.is_placeholder or stage.is_inlined:
                continue
            for tensor in stage.tensors:
                if tensor not in self.buffers:
                    self.buffers[tensor] = self.internal_buffer(stage, tensor)
            if not isinstance(stage.attachment, AttachedAt):
                roots.append(stage)
        body = with_allocations(self.allocations(roots), seq(self.nest(stage) for stage in roots))
        outputs = tuple(
            buffer
            for tensor, buffer in self.buffers.items()
            if buffer in self.params
            and tensor not in self.storage_aliases
            and not self.state.producer_of(tensor).is_placeholder
        )
        knobs = knobs_of(self.state)
        of_tensors = symbols_of(tensor for stage in self.state.stages for tensor in stage.tensors)
        symbols = tuple(dict.fromkeys((*of_tensors, *knobs)))
        sizes = frozenset(size_symbols(self.state))
        inside = hosts(self.state)  # the operations of a cell are their scan's
        ops = [stage.op for stage in self.state.stages if stage.name not in inside]
        checks = tuple(requirements_of(ops, sizes))
        factors = (
            (compare("ge", knob, 1), f"the factor {knob.name} is too small") for knob in knobs
        )
        checks = (*checks, *factors)
        return PrimFunc(self.name, self.params, outputs, body, self.axes, symbols, checks)

    def param(self, tensor: Tensor) -> Buffer:
        stage = self.state.producer_of(tensor)
        if tensor in self.storage_aliases:
            raise ScheduleError(
                f"lower {self.name}",
                f"the argument {tensor.name} is stored in {self.storage_aliases[tensor].name}",
                hint="leave it out of the arguments: it is a part of a scan",
            )
        if isinstance(stage.attachment, AttachedAt) or stage.is_inlined:
            raise ScheduleError(
                f"lower {self.name}",
                f"the argument {tensor.name} is not stored as a whole",
                hint=f"call s[{tensor.name}].compute_root(), or leave it out of the arguments",
            )
        return Buffer(buffer_name(stage, tensor), tensor.shape, tensor.dtype)

    def internal_buffer(self, stage: StageState, tensor: Tensor) -> Buffer:
        region = self.bounds.stages[stage.name].region
        is_whole = is_scan(stage) or stage.is_extern
        shape = tensor.shape if is_whole else tuple(span.extent for span in region)
        strides = aligned_strides(stage, shape)
        scope, separators = scope_of(self.state, stage), stage.separators
        name = buffer_name(stage, tensor)
        return Buffer(name, shape, tensor.dtype, scope, strides, separators=separators)

    def allocations(self, stages: Iterable[StageState]) -> Iterator[PendingAllocation]:
        """Yield the buffers to be allocated for the values of stages."""
        for stage in stages:
            for tensor in stage.tensors:
                if self.buffers[tensor] not in self.params and tensor not in self.storage_aliases:
                    buffer, double = self.buffers[tensor], self.filled_ahead(stage)
                    yield PendingAllocation(buffer, stage.name, double, self.window(stage))

    def filled_ahead(self, stage: StageState) -> Var | None:
        """Return the variable of the loop that fills a double buffer for its next iteration."""
        at = stage.attachment
        if not (stage.double_buffered_by and isinstance(at, AttachedAt)):
            return None
        return self.bounds.stages[at.stage].loop_vars[at.axis]

    def window(self, stage: StageState) -> Window | None:
        """Return how the part of a stage moves that is to keep what is needed again."""
        window = moving_window(self.state, stage) if stage.rolled_by else None
        if isinstance(window, Illegal):
            raise ScheduleError(
                f"lower {self.name}", window.reason,
                got=window.got, because=window.because, hint=window.hint,
            )  # fmt: skip
        return window

    # -- one stage -----------------------------------------------------------------------------

    def nest(self, stage: StageState) -> Stmt:
        """Return the loops of a stage with all that is attached to them, and checks before them."""
        if isinstance(stage.op, ExternOp):
            return self.statements(stage, stage.op)
        bounds = self.bounds.stages[stage.name]
        if is_scan(stage):  # what its steps compute is attached
            return self.loops(stage, bounds, stage.leaves, (), Inside(None, seq(())))
        scan = hosts(self.state).get(stage.name)
        first = scan.op.first if scan is not None and isinstance(scan.op, ScanOp) else 0
        checks = IndexChecks(self.state, stage, bounds, first, self.expr)
        own = self.own_nest(stage, bounds, checks)
        before = checks.before(self.bodies[stage.name])
        if before is None:
            return own
        self.axes[checks.origin] = frozenset()
        return seq((before, own))

    def own_nest(self, stage: StageState, bounds: StageBounds, checks: IndexChecks) -> Stmt:
        """Return the loops of a stage that computes elements one by one."""
        bodies = self.bodies[stage.name]
        values = {axis.var: value for axis, value in bounds.values.items()}
        targets = [self.target(stage, bounds, tensor) for tensor in stage.tensors]
        head = bodies[0]
        inner_guards: tuple[Expr, ...] = ()
        if has_barriers(self.state, stage):  # all threads must come to them: guards go behind
            inner_guards, bounds = bounds.guards, replace(bounds, guards=())
        if stage.tensorized is not None:
            return tensorized_nest(self, stage, bounds, inner_guards)
        if not isinstance(head, Reduce):
            parts = zip(stage.tensors, targets, bodies, strict=True)
            store = seq(
                self.store(stage, tensor, target, self.expr(body, values), "", stage.leaves)
                for tensor, target, body in parts
            )
            store = under(inner_guards, seq((checks.inside(bodies, values), store)))
            return self.loops(stage, bounds, stage.leaves, (), Inside(None, store))
        first = next(n for n, leaf in enumerate(stage.leaves) if leaf.kind == "reduce")
        shared, inner = stage.leaves[:first], stage.leaves[first:]
        if reduced_by_threads(stage):
            return self.nest_across_threads(stage, bounds, targets, head, values, inner_guards)
        places = [
            (self.buffers[tensor], target)
            for tensor, target in zip(stage.tensors, targets, strict=True)
        ]
        update = self.update(stage, places, head, values)
        update = under(inner_guards, seq((checks.inside([head], values), update)))
        data = [leaf for leaf in stage.leaves if leaf.kind == "data"]
        start = seq(
            self.store(stage, tensor, target, self.expr(value, values), INIT, data)
            for tensor, target, value in zip(stage.tensors, targets, head.start, strict=True)
        )
        start = seq((checks.inside(head.init, values), start))
        init = self.init_nest(stage, bounds, start, inner, inner_guards)
        main = self.loops(stage, bounds, inner, shared, Inside(None, update))
        return self.loops(stage, bounds, shared, (), Inside(init, main))

    def statements(self, stage: StageState, op: ExternOp) -> Stmt:
        """Return the statements of a stage that code from outside computes."""
        ref = StepRef("", stage.name)
        self.axes[ref] = frozenset()
        own, tensors = (*op.in_buffers, *op.out_buffers), (*op.inputs, *stage.tensors)
        known = {a: self.buffers[tensor] for a, tensor in zip(own, tensors, strict=True)}

        def rule(node: Node) -> Node:
            if isinstance(node, Store | ExternCall | For | Allocate):
                return replace(node, origin=(ref,))
            return node

        body = with_buffers(op.body, known)
        outputs = [known[buffer] for buffer in op.out_buffers]
        body = with_zeros(body, outputs, fills_unstored=False)
        if not uses_threads(self.state):  # the simulator of a device checks each access
            body = with_checks(body, tuple(known.values()))
        return rewrite(body, rule)

    def target(self, stage: StageState, bounds: StageBounds, tensor: Tensor) -> tuple[Expr, ...]:
        """Return the indices that the stage stores to: relative to its buffer's region."""
        values = [bounds.values[axis] for axis in stage.op.axis]
        return self.shift(tensor, values)

    def shift(self, tensor: Tensor, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        stage = self.state.producer_of(tensor)
        is_whole = tensor in self.storage_aliases or stage.is_placeholder or is_scan(stage)
        if is_whole or stage.is_extern or self.buffers[tensor] in self.params:
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

    def nest_across_threads(
        self,
        stage: StageState,
        bounds: StageBounds,
        targets: Sequence[tuple[Expr, ...]],
        head: Reduce,
        values: dict[Var, Expr],
        guards: Sequence[Expr],
    ) -> Stmt:
        """Return the loops of a reduction that threads share: see `cross_thread`.

        All threads come to its barriers: the guards are inside. The threads' loops stand outside
        the other ones of the reduction: each thread's part lives during these.
        """
        threads = reduced_by_threads(stage)
        order = nest_order(stage)
        first = next(n for n, leaf in enumerate(order) if leaf is threads[0])
        outer, serial = order[:first], order[first + len(threads) :]
        names = [self.buffers[tensor].name for tensor in stage.tensors]
        parts = parts_of(stage, bounds, self.threads_beside(stage), names)
        self.shared += (PendingAllocation(buffer, stage.name) for buffer in parts.left)
        assign = Assigner(self.origin(stage, PART, (*outer, *threads)))
        start = [self.expr(expr, values) for expr in head.start]
        identity = head.reducer.identity_of(head.values)
        fresh = seq(map(assign, parts.places(), identity))
        update = under(guards, self.update(stage, parts.places(), head, values))
        most = self.loops(stage, bounds, serial, (*outer, *threads), Inside(None, update))
        reduced = {bounds.loop_vars[leaf] for leaf in (*threads, *serial)}
        needed = (guard for guard in guards if not loop_vars_of(guard) & reduced)
        result: Sequence[Expr] = [Load(*slot) for slot in parts.slots(index_const(0))]
        if head.init:
            result = combine(head.reducer, start, result)
        places = zip((self.buffers[tensor] for tensor in stage.tensors), targets, strict=True)
        store = under((*self.storing(stage), *needed), seq(map(assign, places, result)))
        body = seq((fresh, most, parts.combined(head.reducer, assign), store))
        own = (PendingAllocation(buffer, stage.name) for buffer in parts.own)
        body = with_allocations(own, body)
        body = self.loops(stage, bounds, threads, outer, Inside(None, body))
        return self.loops(stage, bounds, outer, (), Inside(None, body))

    def threads_beside(self, stage: StageState) -> list[tuple[Var, int]]:
        """Return variables and extents of a block's threads but those that share a reduction."""
        bounds = self.bounds.stages[stage.name]
        found = {
            self.bounds.stages[host.name].loop_vars[leaf]: self.bounds.stages[host.name].extents[
                leaf
            ]
            for host, leaf in threads_around(self.state, stage).values()
            if is_in_block(host.kind(leaf))
        }
        for leaf in stage.leaves:
            if leaf.kind == "data" and is_in_block(stage.kind(leaf)):
                found.setdefault(bounds.loop_vars[leaf], bounds.extents[leaf])
        return [(var, extent) for var, extent in found.items() if isinstance(extent, int)]

    def storing(self, stage: StageState) -> Iterator[Expr]:
        """Yield which of the threads that share a reduction stores the result: the first of all."""
        bounds = self.bounds.stages[stage.name]
        for leaf in reduced_by_threads(stage):
            yield compare(
                "eq", bounds.loop_vars[leaf], index_const(stage.storing.get(stage.kind(leaf), 0))
            )

    def update(
        self,
        stage: StageState,
        places: Sequence[Place],
        body: Reduce,
        values: dict[Var, Expr],
    ) -> Stmt:
        """Return what combines one more point with the results so far, which are at `places`."""
        assign = Assigner(self.origin(stage, "", stage.leaves))
        update = accumulate(
            body.reducer, places, [self.expr(value, values) for value in body.values], assign
        )
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
        return Store(self.buffers[tensor], target, value, self.origin(stage, part, leaves))

    def origin(self, stage: StageState, part: str, leaves: Sequence[Axis]) -> Origin:
        """Return where a store of a stage comes from, which runs in the loops of `leaves`."""
        ref = StepRef("", stage.name, part)
        self.axes[ref] = frozenset(step_ref(self.state, stage, leaf) for leaf in leaves)
        joined = self.bounds.stages[stage.name].joined
        return (ref, *(step_ref(self.state, stage, leaf) for leaf in leaves if leaf in joined))

    def init_nest(
        self,
        stage: StageState,
        bounds: StageBounds,
        start: Stmt,
        inner: Sequence[Axis],
        inner_guards: tuple[Expr, ...],
    ) -> Stmt:
        """Return the loops around what sets elements to what the reduction starts from."""
        fresh: dict[Var, Expr] = {}
        for leaf in inner:
            if leaf.kind == "data":
                old = bounds.loop_vars[leaf]
                fresh[old] = Var(f"{old.name}.init")
        kept = {bounds.loop_vars[leaf] for leaf in inner if leaf.kind == "data"}
        reduced = {bounds.loop_vars[leaf] for leaf in inner if leaf.kind == "reduce"}
        guards = [
            guard
            for guard in bounds.guards
            if loop_vars_of(guard) & kept and not loop_vars_of(guard) & reduced
        ]
        needed = (guard for guard in inner_guards if not loop_vars_of(guard) & reduced)
        body = under((*needed, *guards), start)
        for leaf in reversed(inner):
            if leaf.kind == "data":
                body = self.loop(stage, bounds, leaf, body)
        return rename(body, fresh)

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
        inside: Inside,
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
        is_inside = threads_of_block(self.state, stage)
        outermost = threads[0] if threads and not is_inside else None
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
            body = self.loop(stage, bounds, leaf, under(ready, body))
            if stage.kind(leaf) == "threadIdx.x":
                body = self.with_shared(WARP, body)
            if leaf is outermost:
                body = self.with_shared(SHARED, body)
        return under(loose, body)

    def with_shared(self, scope: str, body: Stmt) -> Stmt:
        """Return loops of threads inside the memory of a scope that they share."""
        mine = [pending for pending in self.shared if pending.buffer.scope == scope]
        self.shared = [pending for pending in self.shared if pending.buffer.scope != scope]
        return with_allocations(mine, body)

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
        together = [other for other in attached if is_cooperative(self.state, other)]
        nests: list[Stmt] = []
        fresh: set[TensorHandle] = set()  # written by other threads since the last barrier
        overwriting = [other for other in together if not is_update(self.state, other)]
        for other in attached:
            is_first = other in overwriting[:1]  # what it overwrites must have been read by all
            if is_first or fresh & tensors_read(self.state, other):
                nests.append(Barrier())
                fresh.clear()
            nests.append(self.nest(other))
            if other in together:
                fresh.update(other.tensors)
        if fresh:
            nests.append(Barrier())
        self.shared += self.allocations(together)
        private = [other for other in attached if other not in together]
        return with_allocations(self.allocations(private), seq((*nests, body)))
