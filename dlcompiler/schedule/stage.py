"""`Stage`: the handle on one operation of a schedule, ``s[C]``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dlcompiler.display import render
from dlcompiler.errors import ScheduleError
from dlcompiler.ir import Axis, Expr
from dlcompiler.schedule.absent import Handle
from dlcompiler.schedule.inference.bounds import is_same
from dlcompiler.schedule.legality.obligations import extents_of
from dlcompiler.schedule.primitives.env_threads import text_of as threads_text
from dlcompiler.schedule.primitives.set_store_predicate import text_of
from dlcompiler.schedule.state import Inlined, StageState
from dlcompiler.target.scopes import scope_named
from dlcompiler.te import Operation, Tensor, TensorIntrin, ThreadAxis

if TYPE_CHECKING:
    from dlcompiler.schedule.schedule import Schedule


class Stage(Handle):
    """Handle on a stage by its name; its methods act on the current state of the schedule.

    A method that is a primitive applies one step: it returns new axes, if it makes any, or raises a
    `ScheduleError` with the reason and a hint. After an error, the schedule is as it was before.
    """

    __slots__ = ("name", "schedule")

    def __init__(self, schedule: Schedule, name: str) -> None:
        self.schedule = schedule
        self.name = name

    @property
    def state(self) -> StageState:
        """The stage in the current state of the schedule."""
        for stage in self.schedule.state.stages:
            if stage.name == self.name:
                return stage
        made, hint = self.schedule.undone_step(lambda state: state.has_stage(self.name))
        raise ScheduleError(f"stage {self.name}", f"made by an undone step: {made}", hint=hint)

    @property
    def op(self) -> Operation:
        """The operation computed, as rewritten by the steps so far."""
        return self.state.op

    @property
    def tensor(self) -> Tensor:
        """The tensor computed."""
        return self.state.tensor

    @property
    def leaf_iter_vars(self) -> tuple[Axis, ...]:
        """The loops, outermost first."""
        return self.state.leaves

    @property
    def all_iter_vars(self) -> tuple[Axis, ...]:
        """All axes that the stage ever had."""
        return tuple(self.state.paths)

    @property
    def scope(self) -> str:
        """The memory of the stage's buffer."""
        return self.state.scope

    @property
    def is_inlined(self) -> bool:
        """Tell whether the stage is inlined: it has no loops of its own."""
        return isinstance(self.state.attachment, Inlined)

    def __repr__(self) -> str:
        return f"Stage({self.name}: {', '.join(self.state.paths[a] for a in self.state.leaves)})"

    def _repr_html_(self) -> str:
        return render("stage", self)

    def _apply(self, primitive_name: str, **args: Any) -> Any:
        self.state  # noqa: B018 - refuses a stage of an undone step
        return self.schedule.apply(primitive_name, self.name, args)

    def split(
        self, parent: Axis, factor: int | None = None, nparts: int | None = None
    ) -> tuple[Axis, Axis]:
        """Split a loop in two nested ones. See `primitives.split`.

        Parameters
        ----------
        parent
            The loop.
        factor
            Extent of the inner loop: a positive number, or a symbol (`te.var`). Give either this
            or `nparts`.
        nparts
            Extent of the outer loop.

        Returns
        -------
        outer, inner : Axis
            The new loops.
        """
        result: tuple[Axis, Axis] = self._apply("split", axis=parent, factor=factor, nparts=nparts)
        return result

    def fuse(self, *axes: Axis) -> Axis:
        """Fuse adjacent loops into one. See `primitives.fuse`.

        Parameters
        ----------
        *axes
            The loops, or one list of them. A single loop is returned unchanged; without loops, the
            result is a new outermost loop that runs once.

        Returns
        -------
        Axis
            The fused loop.
        """
        if self._is_one_loop(_flat(axes)):
            alone: Axis = _flat(axes)[0]
            return alone
        result: Axis = self._apply("fuse", axes=_flat(axes))
        return result

    def reorder(self, *axes: Axis) -> None:
        """Reorder loops. See `primitives.reorder`.

        Parameters
        ----------
        *axes
            The loops from the outermost to the innermost, or one list of them. All other loops stay
            where they are.
        """
        if not self._is_one_loop(_flat(axes)):
            self._apply("reorder", axes=_flat(axes))

    def _is_one_loop(self, axes: tuple[Any, ...]) -> bool:
        return len(axes) == 1 and self.state.has_leaf(axes[0])

    def tile(
        self, x_parent: Axis, y_parent: Axis, x_factor: int, y_factor: int
    ) -> tuple[Axis, Axis, Axis, Axis]:
        """Split two loops, and move the outer halves outside. See `primitives.tile`.

        Parameters
        ----------
        x_parent, y_parent
            The two loops.
        x_factor, y_factor
            Extents of the inner halves: positive numbers, or symbols (`te.var`).

        Returns
        -------
        x_outer, y_outer, x_inner, y_inner : Axis
            The new loops, from the outermost to the innermost.
        """
        result: tuple[Axis, Axis, Axis, Axis] = self._apply(
            "tile", x=x_parent, y=y_parent, x_factor=x_factor, y_factor=y_factor
        )
        return result

    def vectorize(self, var: Axis) -> None:
        """Run a loop as the lanes of vector instructions. See `primitives.vectorize`.

        Parameters
        ----------
        var
            The loop: a data loop, of which the iterations write different elements.
        """
        self._apply("vectorize", axis=var)

    def unroll(self, var: Axis) -> None:
        """Repeat the body of a loop instead of looping. See `primitives.unroll`.

        Parameters
        ----------
        var
            The loop.
        """
        self._apply("unroll", axis=var)

    def parallel(self, var: Axis) -> None:
        """Run the iterations of a loop on several cores. See `primitives.parallel`.

        Parameters
        ----------
        var
            The loop: a data loop.
        """
        self._apply("parallel", axis=var)

    def tensorize(self, var: Axis, tensor_intrin: TensorIntrin | str) -> None:
        """Replace a loop, and those inside it, by an intrinsic. See `primitives.tensorize`.

        Parameters
        ----------
        var
            The outermost of the loops that are replaced.
        tensor_intrin
            The intrinsic, or its name in `te.tensor_intrin`.
        """
        self._apply("tensorize", axis=var, intrin=tensor_intrin)

    def bind(self, ivar: Axis, thread_ivar: ThreadAxis | str) -> None:
        """Run the iterations of a loop on the threads of a device. See `primitives.bind`.

        Parameters
        ----------
        ivar
            The loop.
        thread_ivar
            The thread axis: ``te.thread_axis("threadIdx.x")``, or its name. If it has an extent,
            the loop must have the same.
        """
        if isinstance(thread_ivar, str):
            thread_ivar = ThreadAxis(thread_ivar)
        elif not isinstance(thread_ivar, ThreadAxis):
            raise ScheduleError(
                f"bind {self.name}", "not a thread axis", got=repr(thread_ivar),
                expected='te.thread_axis("threadIdx.x")',
            )  # fmt: skip
        self._check_threads(ivar, thread_ivar)
        self._apply("bind", axis=ivar, thread=thread_ivar.tag)

    def _check_threads(self, ivar: Axis, wanted: ThreadAxis) -> None:
        """Refuse a thread axis whose extent differs from the extent of the bound loop."""
        if wanted.extent is None:
            return
        attempt = self.schedule.attempt("bind", self.name, {"axis": ivar, "thread": wanted.tag})
        if attempt.state is None:
            return  # `bind` raises the reason
        bounds = extents_of(attempt.state, attempt.state.stage(self.name))
        if not is_same(bounds[ivar], wanted.extent):
            raise ScheduleError(
                f"bind {self.state.label(ivar)}", "the loop has another number of iterations",
                got=str(bounds[ivar]), expected=f"{wanted.extent}, as {wanted!r} has",
                hint="split the loop first, or leave the number of threads out",
            )  # fmt: skip

    def env_threads(
        self, threads: ThreadAxis | str | Sequence[ThreadAxis | str]
    ) -> tuple[Axis, ...]:
        """Run all steps of a scan in one launch. See `primitives.env_threads`.

        Parameters
        ----------
        threads
            The thread axes, with their extents, around the loop over time.

        Returns
        -------
        tuple of Axis
            A loop for each thread axis.
        """
        result: tuple[Axis, ...] = self._apply("env_threads", threads=threads_text(threads))
        return result

    def set_store_predicate(self, predicate: Expr | str) -> None:
        """Choose the thread that stores a reduction. See `primitives.set_store_predicate`.

        Parameters
        ----------
        predicate
            A condition on a thread axis: ``"threadIdx.x == 3"``.
        """
        self._apply("set_store_predicate", predicate=text_of(predicate))

    def set_scope(self, scope: str) -> None:
        """Choose the memory that holds this stage's values. See `primitives.set_scope`.

        Parameters
        ----------
        scope
            ``"global"``, ``"shared"``, ``"local"``, or another memory of the target; ``""`` is
            ``"global"``.
        """
        self._apply("set_scope", scope=scope_named(scope or "global"))

    def storage_align(self, axis: Axis, factor: int, offset: int = 0) -> None:
        """Pad a dimension of this stage's buffer. See `primitives.storage_align`.

        Parameters
        ----------
        axis
            The data axis of the dimension.
        factor, offset
            The stride becomes a number of the form ``n*factor + offset`` [elements].
        """
        self._apply("storage_align", axis=axis, factor=factor, offset=offset)

    def align_extent(self, axis: Axis, factor: int) -> None:
        """Compute a multiple of `factor` along a dimension. See `primitives.align_extent`.

        Parameters
        ----------
        axis
            The data axis of the dimension.
        factor
            What the number of computed elements is rounded up to a multiple of.
        """
        self._apply("align_extent", axis=axis, factor=factor)

    def double_buffer(self) -> None:
        """Double-buffer this stage. See `primitives.double_buffer`."""
        self._apply("double_buffer")

    def rolling_buffer(self) -> None:
        """Keep elements that the next iteration reads again. See `primitives.rolling_buffer`."""
        self._apply("rolling_buffer")

    def pragma(self, var: Axis, pragma_type: str, pragma_value: int | None = None) -> None:
        """Attach a pragma to a loop. See `primitives.pragma`.

        Parameters
        ----------
        var
            The loop.
        pragma_type
            Name of the pragma: ``"auto_unroll_max_step"``, ``"unroll"``, ``"vectorize"``, ….
        pragma_value
            Its number, if it has one.
        """
        self._apply("pragma", axis=var, pragma_type=pragma_type, pragma_value=pragma_value)

    def prefetch(self, tensor: Tensor, var: Axis, offset: int = 1) -> None:
        """Prefetch elements that a later iteration reads. See `primitives.prefetch`.

        Parameters
        ----------
        tensor
            The tensor whose elements are prefetched; this stage reads it.
        var
            The loop in whose iterations that happens.
        offset
            How many iterations later the elements are read.
        """
        args = {"tensor": self.schedule[tensor].name, "axis": var, "offset": offset}
        if tensor.value_index:
            args["tensor_output"] = tensor.value_index
        self._apply("prefetch", **args)

    def transform_layout(self, index_map: Callable[..., Any]) -> tuple[Axis, ...]:
        """Store this stage in another layout. See `primitives.transform_layout`.

        Parameters
        ----------
        index_map
            A function from the indices of an element to the list of its indices in the new
            layout: ``lambda i, j: [j // 4, i, j % 4]``.

        Returns
        -------
        tuple of Axis
            The new axes, one for each dimension of the layout.
        """
        result: tuple[Axis, ...] = self._apply("transform_layout", index_map=index_map)
        return result

    def compute_at(self, parent: Stage, scope: Axis | ThreadAxis) -> None:
        """Compute this stage inside a loop of its consumer. See `primitives.compute_at`.

        Parameters
        ----------
        parent
            The consumer: ``s[C]``.
        scope
            A loop of the consumer, or a thread axis, which stands for the loop that is bound to it.
        """
        is_stage = isinstance(parent, Stage)
        if not (is_stage and parent.schedule.shares_history(self.schedule)):
            raise ScheduleError(
                f"compute_at {self.name}",
                "not a stage of this schedule",
                got=repr(parent),
                expected="s[consumer]",
            )
        self._apply("compute_at", parent=parent.name, axis=parent.loop_of(scope))

    def loop_of(self, axis: Axis | ThreadAxis) -> Any:
        """Return the loop bound to a thread axis; anything else is returned unchanged.

        Parameters
        ----------
        axis
            A loop of this stage, or a thread axis.
        """
        if not isinstance(axis, ThreadAxis):
            return axis
        return next((leaf for leaf in self.state.leaves if self.state.kind(leaf) == axis.tag), axis)

    def compute_inline(self) -> None:
        """Substitute this stage's expression into its readers. See `primitives.compute_inline`."""
        self._apply("compute_inline")

    def compute_root(self) -> None:
        """Give this stage its own loop nest. See `primitives.compute_root`."""
        self._apply("compute_root")


def _flat(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the axes of a call, which gives them one by one or as a single list."""
    if len(axes) == 1 and isinstance(axes[0], list | tuple):
        return tuple(axes[0])
    return axes
