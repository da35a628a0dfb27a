"""Build the parts that all loop nests have: buffers, loops, attached stages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from dlcompiler.errors import ScheduleError
from dlcompiler.ir import (
    SHARED,
    WARP,
    Axis,
    Barrier,
    Buffer,
    Expr,
    For,
    If,
    Load,
    Origin,
    Reduce,
    StepRef,
    Stmt,
    Store,
    TensorHandle,
    TensorLoad,
    Var,
    Window,
    binary,
    extent_expr,
    is_in_block,
    rewrite,
    seq,
)
from dlcompiler.ir.rewrite import Node
from dlcompiler.lowering.barrier_placement import is_cooperative, tensors_read
from dlcompiler.lowering.pieces import (
    Assigner,
    Inside,
    PendingAllocation,
    Place,
    accumulate,
    loop_vars_of,
    rename,
    under,
    with_allocations,
)
from dlcompiler.schedule import AttachedAt, StageBounds, StageState, State, infer_bounds
from dlcompiler.schedule.inference.inlining import bodies
from dlcompiler.schedule.inference.placement import placed
from dlcompiler.schedule.inference.recurrences import is_update, storage_aliases
from dlcompiler.schedule.inference.rolling import moving_window
from dlcompiler.schedule.inference.strides import aligned_strides
from dlcompiler.schedule.inference.thread_loops import (
    scope_of,
    threads_of_block,
)
from dlcompiler.schedule.state import buffer_name, is_scan, step_ref
from dlcompiler.schedule.verdict import Illegal
from dlcompiler.te import Tensor


class LoopBuilder:
    """Builds the loops and buffers of the stages of a schedule state.

    Parameters
    ----------
    state
        The schedule state.
    args
        The tensors that become parameters, and symbols passed as numbers.
    name
        Name of the function.
    nest
        Builds the whole nest of a stage: `loops` calls it for the stages that are attached.
    """

    def __init__(
        self,
        state: State,
        args: Sequence[Tensor | Var],
        name: str,
        nest: Callable[[LoopBuilder, StageState], Stmt],
    ) -> None:
        self.state = state = placed(state)
        self.name = name
        self.nest = nest
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
        self._declare_buffers()

    def _declare_buffers(self) -> None:
        """Make a buffer for each tensor that is stored and is not an argument."""
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

    def param(self, tensor: Tensor) -> Buffer:
        """Return the buffer of an argument, which holds the whole tensor."""
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
        """Return the buffer of an intermediate tensor; it holds only the region computed at once.

        The buffers of scans and of external code hold whole tensors, because their indices are not
        shifted.
        """
        region = self.bounds.stages[stage.name].region
        is_whole = is_scan(stage) or stage.is_extern
        shape = tensor.shape if is_whole else tuple(span.extent for span in region)
        strides = aligned_strides(stage, shape)
        scope, separators = scope_of(self.state, stage), stage.separators
        name = buffer_name(stage, tensor)
        return Buffer(name, shape, tensor.dtype, scope, strides, separators=separators)

    def allocations(self, stages: Iterable[StageState]) -> Iterator[PendingAllocation]:
        """Yield the buffers of stages that need an allocation."""
        for stage in stages:
            for tensor in stage.tensors:
                if self.buffers[tensor] not in self.params and tensor not in self.storage_aliases:
                    buffer, double = self.buffers[tensor], self.filled_ahead(stage)
                    yield PendingAllocation(buffer, stage.name, double, self.window(stage))

    def filled_ahead(self, stage: StageState) -> Var | None:
        """Return the variable of the loop over which a stage is double-buffered, or None."""
        at = stage.attachment
        if not (stage.double_buffered_by and isinstance(at, AttachedAt)):
            return None
        return self.bounds.stages[at.stage].loop_vars[at.axis]

    def window(self, stage: StageState) -> Window | None:
        """Return the window of a rolling buffer: the part that later iterations reuse."""
        window = moving_window(self.state, stage) if stage.rolled_by else None
        if isinstance(window, Illegal):
            raise ScheduleError(
                f"lower {self.name}", window.reason,
                got=window.got, because=window.because, hint=window.hint,
            )  # fmt: skip
        return window

    def target(self, stage: StageState, bounds: StageBounds, tensor: Tensor) -> tuple[Expr, ...]:
        """Return the indices, in the buffer of a tensor, that the stage stores to."""
        values = [bounds.values[axis] for axis in stage.op.axis]
        return self.shift(tensor, values)

    def shift(self, tensor: Tensor, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Convert indices of a tensor to indices of its buffer, which holds only a region of it."""
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
        """Replace the axes in an expression by `values`, and tensors by loads of their buffers."""

        def rule(node: Node) -> Node:
            if isinstance(node, Var):
                return values.get(node, node)
            if isinstance(node, TensorLoad):
                assert isinstance(node.tensor, Tensor)
                return Load(self.buffers[node.tensor], self.shift(node.tensor, node.indices))
            return node

        return rewrite(body, rule)

    def store(
        self,
        stage: StageState,
        tensor: Tensor,
        target: tuple[Expr, ...],
        value: Expr,
        part: str,
        leaves: Sequence[Axis],
    ) -> Store:
        """Return the store of an element; `part` and `leaves` determine its `origin`."""
        return Store(self.buffers[tensor], target, value, self.origin(stage, part, leaves))

    def update(
        self,
        stage: StageState,
        places: Sequence[Place],
        body: Reduce,
        values: dict[Var, Expr],
    ) -> Stmt:
        """Return the update of a reduction: combine one point with the partial results."""
        assign = Assigner(self.origin(stage, "", stage.leaves))
        update = accumulate(
            body.reducer, places, [self.expr(value, values) for value in body.values], assign
        )
        if body.condition is not None:
            update = If(self.expr(body.condition, values), update)
        return update

    def origin(self, stage: StageState, part: str, leaves: Sequence[Axis]) -> Origin:
        """Return the origin of a store of a stage that runs in the loops of `leaves`."""
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
        """Return the loops that initialise a reduction, with variables of their own.

        Guards on reduction loops are left out: these loops are not around the initialisation.
        """
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
        """Return the loop of one leaf axis."""
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

        `outside` are outer loops of the same stage: guards that depend only on their variables are
        tested there. A guard is placed in the outermost loop that binds all of its variables.
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
                continue  # a loop further out already binds the same threads
            body = self.loop(stage, bounds, leaf, under(ready, body))
            if stage.kind(leaf) == "threadIdx.x":
                body = self.with_shared(WARP, body)
            if leaf is outermost:
                body = self.with_shared(SHARED, body)
        return under(loose, body)

    def with_shared(self, scope: str, body: Stmt) -> Stmt:
        """Allocate the pending buffers of a shared scope around the loops of its threads."""
        mine = [pending for pending in self.shared if pending.buffer.scope == scope]
        self.shared = [pending for pending in self.shared if pending.buffer.scope != scope]
        return with_allocations(mine, body)

    def with_attached(self, stage: StageState, leaf: Axis, body: Stmt) -> Stmt:
        """Put the stages attached to a leaf before its body, with the barriers between them.

        A barrier is needed before the first stage that overwrites shared memory, because other
        threads may still read the old values, and before each read of values that other threads
        have written since the last barrier.
        """
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
            is_first = other in overwriting[:1]
            if is_first or fresh & tensors_read(self.state, other):
                nests.append(Barrier())
                fresh.clear()
            nests.append(self.nest(self, other))
            if other in together:
                fresh.update(other.tensors)
        if fresh:
            nests.append(Barrier())
        self.shared += self.allocations(together)
        private = [other for other in attached if other not in together]
        return with_allocations(self.allocations(private), seq((*nests, body)))
