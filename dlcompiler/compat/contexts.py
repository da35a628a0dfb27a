"""`PassContext`: TVM's options of the passes on graphs and on loop nests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from dlcompiler.compat.missing import Named
from dlcompiler.compat.notes import note
from dlcompiler.errors import UserError

UNUSED = frozenset(
    (
        *("tir.UnrollLoop", "tir.LoopPartition", "tir.InjectDoubleBuffer", "tir.HoistIfThenElse"),
        *("tir.Simplify", "tir.disable_vectorize", "tir.disable_storage_rewrite"),
        *("tir.disable_cse_tir", "tir.disable_assert", "tir.noalias"),
        *("tir.detect_global_barrier",),
        *("tir.debug_keep_trivial_loop", "tir.instrument_lwp", "tir.is_entry_func"),
        *("tir.use_async_copy", "tir.merge_static_smem", "tir.enable_equiv_terms_in_cse_tir"),
    )
)
"""Known options, none of which changes what a program computes; they have no effect here."""

GRAPH_OPTIONS = frozenset(("relay.FuseOps.max_depth", "dlcompiler.FuseOps.options"))
"""Options of passes on graphs that have an effect: `relay.transform` reads them."""

UNUSED_BY_GRAPHS = frozenset(
    (
        *("relay.backend.use_auto_scheduler", "relay.backend.use_meta_schedule"),
        *("relay.backend.disable_compile_engine_cache", "relay.fallback_device_type"),
        *("relay.backend.tir_converter", "relay.FuseOps.link_params"),
        *("relay.ToMixedPrecision.keep_orig_output_dtype", "relay.frontend.fill_span"),
    )
)
"""Known options of graphs without effect here."""

BOUNDS = "tir.instrument_bound_checkers"
"""The option that makes a function check each access; the only one with an effect."""

KNOWN = UNUSED | UNUSED_BY_GRAPHS | GRAPH_OPTIONS | {BOUNDS}
"""All options that are accepted."""

REFUSED = {"tir.add_lower_pass": "user-defined passes come in a later version"}
"""Options that are refused, since they would change the program in an unsupported way."""

_stack: ContextVar[tuple[PassContext, ...]] = ContextVar("pass_contexts", default=())


class PassContext(Named):
    """Options for the passes inside a ``with``.

    Parameters
    ----------
    opt_level : int
        Passes on graphs of a higher level do not run. Every pass on loop nests runs.
    required_pass, disabled_pass : sequence of str, optional
        Passes on graphs, by Relay's names, that run at every level, or never.
    instruments : sequence, optional
        Objects of `tvm.ir.instrument`, which see the passes on graphs; for those on loop nests
        there is ``dlc.lower(…, observers=[…])``.
    config : mapping, optional
        Options by name: known ones are accepted, with a note where they have no effect.
    """

    classic = "tvm.transform.PassContext"

    def __init__(
        self,
        opt_level: int = 2,
        required_pass: Sequence[str] | None = None,
        disabled_pass: Sequence[str] | None = None,
        instruments: Sequence[Any] | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        self.opt_level = opt_level
        self.config = dict(config or {})
        self.disabled_pass = tuple(disabled_pass or ())
        self.required_pass = tuple(required_pass or ())
        self.instruments = tuple(instruments or ())
        for key in self.config:
            _check_option(key)

    @staticmethod
    def current() -> PassContext:
        """Return the innermost context."""
        stack = _stack.get()
        return stack[-1] if stack else PassContext()

    @property
    def instrument(self) -> str | None:
        """The checks that a built function does while it runs."""
        return "bounds" if self.config.get(BOUNDS) else None

    @staticmethod
    def check_current() -> None:
        """Show a note on options of the innermost context that have no effect."""
        context = PassContext.current()
        unused = [key for key in context.config if key in UNUSED]
        unused += [*context.disabled_pass, *context.required_pass]
        unused += ["instruments"] if context.instruments else []
        if unused:
            note(f"PassContext: {', '.join(unused)} has no effect here", 5)

    def override_instruments(self, instruments: Sequence[Any]) -> None:
        """Replace the instruments, inside the ``with`` of this context."""
        self._each("exit_pass_ctx")
        self.instruments = tuple(instruments)
        self._each("enter_pass_ctx")

    def _each(self, event: str) -> None:
        for instrument in self.instruments:
            getattr(instrument, event)()

    def __enter__(self) -> PassContext:
        _stack.set((*_stack.get(), self))
        self._each("enter_pass_ctx")
        return self

    def __exit__(self, *error: object) -> None:
        _stack.set(_stack.get()[:-1])
        self._each("exit_pass_ctx")


def build_config(
    opt_level: int = 2, required_pass: Sequence[str] | None = None,
    disabled_pass: Sequence[str] | None = None, **options: Any,
) -> PassContext:  # fmt: skip
    """Return a context: TVM's older name of `PassContext`.

    Parameters
    ----------
    opt_level, required_pass, disabled_pass
        As for `PassContext`.
    **options
        Options of passes on loop nests, which have no effect.
    """
    if unknown := sorted(set(options) - OLD_OPTIONS):
        raise UserError(
            "build_config", "unknown option", got=unknown[0],
            expected=", ".join(sorted(OLD_OPTIONS)),
        )  # fmt: skip
    return PassContext(opt_level, required_pass, disabled_pass)


OLD_OPTIONS = frozenset(
    (
        *("auto_unroll_max_step", "auto_unroll_max_depth", "auto_unroll_max_extent"),
        *("unroll_explicit", "detect_global_barrier", "partition_const_loop", "data_alignment"),
        *("offset_factor", "double_buffer_split_loop", "dump_pass_ir", "restricted_func"),
        *("instrument_bound_checkers", "disable_select_rewriting", "disable_vectorize"),
        *("disable_assert",),
    )
)


def _check_option(key: str) -> None:
    if key in KNOWN:
        return
    if key in REFUSED:
        raise UserError(
            "PassContext", f"{key} is not part of dlcompiler yet", because=REFUSED[key],
            hint="dlc.lower(s, args, observers=[…]) sees every pass",
        )  # fmt: skip
    raise UserError("PassContext", "unknown option", got=key, expected=", ".join(sorted(KNOWN)))
