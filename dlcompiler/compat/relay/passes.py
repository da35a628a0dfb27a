"""Passes on graphs with Relay's names, one after another, and what looks at them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import fields as fields_of
from functools import partial
from typing import Any

from dlcompiler import graph
from dlcompiler.compat.contexts import PassContext
from dlcompiler.compat.missing import Named
from dlcompiler.compat.notes import note
from dlcompiler.compat.relay.modules import IRModule, module_of
from dlcompiler.errors import GraphError
from dlcompiler.graph import passes
from dlcompiler.graph.ir import MAIN
from dlcompiler.graph.passes.devices import merge_composite
from dlcompiler.graph.passes.layouts import convert_layout


@dataclass(frozen=True)
class PassInfo:
    """The name of a pass, its level, and the passes that it requires."""

    name: str
    opt_level: int = 0
    """Least level at which a sequence runs it; [1]."""
    required: tuple[str, ...] = ()
    """Names of passes that it needs; accepted, without effect: types are inferred when needed."""


class Pass(Named):
    """A pass: a function from a module to another one."""

    classic = "tvm.transform.Pass"

    def __init__(self, info: PassInfo, run: Callable[[graph.Module], graph.Module]) -> None:
        self.info = info
        """Its name and its level."""
        self.run = run
        """The function, on modules of `dlcompiler.graph`."""

    def __call__(self, mod: Any) -> IRModule:
        """Run the pass, whatever its level.

        Parameters
        ----------
        mod : IRModule
            The module, which does not change.
        """
        module = IRModule.of(module_of(mod, self.info.name))
        instruments = PassContext.current().instruments
        if not all(_ask(each, "should_run", module, self.info) for each in instruments):
            return module
        for each in instruments:
            _ask(each, "run_before_pass", module, self.info)
        made = IRModule.of(self.run(module.graph))
        for each in instruments:
            _ask(each, "run_after_pass", made, self.info)
        return made

    def __repr__(self) -> str:
        return f"<pass {self.info.name}, opt_level {self.info.opt_level}>"


def _ask(instrument: Any, event: str, module: IRModule, info: PassInfo) -> bool:
    answer = getattr(instrument, event)(module, info)
    return answer is None or bool(answer)


class Sequential(Pass):
    """Passes one after another; those of a higher level than the context's are left out.

    Parameters
    ----------
    passes : sequence of Pass
        The passes.
    opt_level : int
        Level of the whole; [1].
    name : str
        Its name.
    required : sequence of str, optional
        Accepted, without effect.
    """

    classic = "tvm.transform.Sequential"

    def __init__(
        self, passes: Sequence[Pass], opt_level: int = 0, name: str = "sequential",
        required: Sequence[str] | None = None, traceable: bool = False,
    ) -> None:  # fmt: skip
        del traceable
        super().__init__(PassInfo(name, opt_level, tuple(required or ())), self._run_all)
        for each in passes:
            if not isinstance(each, Pass):
                raise GraphError(
                    "Sequential", "not a pass", got=repr(each),
                    hint="a pass is made by a call: relay.transform.FoldConstant()",
                )  # fmt: skip
        self.passes = tuple(passes)
        """The passes in their order."""

    def _run_all(self, module: graph.Module) -> graph.Module:
        whole = IRModule.of(module)
        context = PassContext.current()
        for each in self.passes:
            if is_enabled(each.info.name, each.info.opt_level, context):
                whole = each(whole)
        return whole.graph


def is_enabled(name: str, level: int, context: PassContext) -> bool:
    """Tell whether a context lets a pass run."""
    if name in context.disabled_pass:
        return False
    return name in context.required_pass or level <= context.opt_level


def _made(name: str, level: int, run: Callable[..., graph.Module], **options: Any) -> Pass:
    return Pass(PassInfo(name, level), partial(run, **options) if options else run)


# -- the passes ------------------------------------------------------------------------------------


def InferType() -> Pass:  # noqa: N802 - Relay's name, as of all below
    """Return the pass that gives each variable and function its type."""
    return _made("InferType", 0, graph.infer_types)


def SimplifyInference() -> Pass:  # noqa: N802
    """Return the pass that writes normalisations as arithmetic, and removes dropout."""
    return _made("SimplifyInference", 0, passes.simplify_inference)


def SimplifyExpr() -> Pass:  # noqa: N802
    """Return the pass that removes operators without effect, and joins similar ones."""
    return _made("SimplifyExpr", 0, passes.simplify_expr)


def FoldConstant(fold_qnn: bool = False) -> Pass:  # noqa: N802
    """Return the pass that computes calls whose arguments are constants."""
    del fold_qnn
    return _made("FoldConstant", 2, passes.fold_constants)


def FoldScaleAxis() -> Pass:  # noqa: N802
    """Return the pass that moves factors of channels into the weights beside them."""
    return _made("FoldScaleAxis", 3, passes.fold_scale_axis)


def ForwardFoldScaleAxis() -> Pass:  # noqa: N802
    """Return `FoldScaleAxis`: both directions are one pass here."""
    return _made("ForwardFoldScaleAxis", 3, passes.fold_scale_axis)


def BackwardFoldScaleAxis() -> Pass:  # noqa: N802
    """Return `FoldScaleAxis`: both directions are one pass here."""
    return _made("BackwardFoldScaleAxis", 3, passes.fold_scale_axis)


def CanonicalizeOps() -> Pass:  # noqa: N802
    """Return the pass that writes additions of a bias as additions."""
    return _made("CanonicalizeOps", 3, passes.canonicalize_ops)


def EliminateCommonSubexpr(fskip: Callable[[Any], bool] | None = None) -> Pass:  # noqa: N802
    """Return the pass that computes equal calls once.

    Parameters
    ----------
    fskip : callable, optional
        Not part of dlcompiler yet.
    """
    if fskip is not None:
        raise GraphError("EliminateCommonSubexpr", "fskip= is not part of dlcompiler yet")
    return _made("EliminateCommonSubexpr", 3, passes.eliminate_common_subexpressions)


def DeadCodeElimination(  # noqa: N802
    inline_once: bool = False, ignore_impurity: bool = False
) -> Pass:
    """Return the pass that removes what nothing uses.

    Parameters
    ----------
    inline_once, ignore_impurity : bool
        Accepted: lets that are used once stay, operators have no effects but their results.
    """
    del inline_once, ignore_impurity
    return _made("DeadCodeElimination", 1, passes.eliminate_dead_code)


def RemoveUnusedFunctions(entry_functions: Sequence[str] | None = None) -> Pass:  # noqa: N802
    """Return the pass that removes functions that the entry does not reach.

    Parameters
    ----------
    entry_functions : sequence of str, optional
        One name; by default ``main``.
    """
    (entry,) = entry_functions or (MAIN,)
    return _made("RemoveUnusedFunctions", 1, passes.eliminate_dead_code, entry=entry)


def FuseOps(fuse_opt_level: int = -1) -> Pass:  # noqa: N802
    """Return the pass that puts operators that are one kernel into functions.

    Parameters
    ----------
    fuse_opt_level : int
        0 leaves each operator alone; any other level fuses. -1: the level of the context.

    Notes
    -----
    Two options of `PassContext` are read: ``relay.FuseOps.max_depth``, and
    ``dlcompiler.FuseOps.options``, what is fused beyond Relay's rule: ``{"rows": True}``, or a
    `dlcompiler.graph.passes.FusionOptions`. `relay.build` and `relay.optimize` read them, too.
    """
    given: object = fuse_opt_level
    if not isinstance(given, int):
        raise GraphError("FuseOps", "fuse_opt_level is no integer", got=repr(given))

    def run(module: graph.Module) -> graph.Module:
        context = PassContext.current()
        level = context.opt_level if fuse_opt_level < 0 else fuse_opt_level
        depth = context.config.get("relay.FuseOps.max_depth", passes.fusion.MAX_DEPTH)
        if level == 0:
            return passes.fuse_ops(module, max_depth=1)
        options = _fusion_options(context.config.get("dlcompiler.FuseOps.options", {}))
        return passes.fuse_ops(module, max_depth=depth, options=options)

    return _made("FuseOps", 0, run)


def _fusion_options(given: object) -> passes.FusionOptions:
    """Return the options of fusion in a context: themselves, or by their names."""
    if not isinstance(given, Mapping):
        return given  # type: ignore[return-value]  # `fuse_ops` refuses what is none
    try:
        return passes.FusionOptions(**given)
    except TypeError:
        known = [each.name for each in fields_of(passes.FusionOptions)]
        raise GraphError(
            "FuseOps", "unknown option in dlcompiler.FuseOps.options", got=repr(dict(given)),
            expected=", ".join(known),
        ) from None  # fmt: skip


def _combine(name: str, operator: str, least: int) -> Pass:
    return _made(name, 4, passes.combine_parallel, operator=operator, least=least)


def CombineParallelConv2D(min_num_branches: int = 3) -> Pass:  # noqa: N802
    """Return the pass that computes several convolutions of the same data as one."""
    return _combine("CombineParallelConv2d", "nn.conv2d", min_num_branches)


def CombineParallelDense(min_num_branches: int = 3, to_batch: bool = False) -> Pass:  # noqa: N802
    """Return the pass that computes several products of the same data as one.

    Parameters
    ----------
    min_num_branches : int
        Fewest that are combined; [1].
    to_batch : bool
        True, a batch of products, is not part of dlcompiler: rows are joined.
    """
    if to_batch:
        note("CombineParallelDense: to_batch=True has no effect; rows of the weights are joined")
    return _combine("CombineParallelDense", "nn.dense", min_num_branches)


def CombineParallelBatchMatmul(min_num_branches: int = 3) -> Pass:  # noqa: N802
    """Return the pass that computes several batches of products of the same data as one."""
    return _combine("CombineParallelBatchMatmul", "nn.batch_matmul", min_num_branches)


def ConvertLayout(desired_layouts: Mapping[str, Sequence[str]]) -> Pass:  # noqa: N802
    """Return the pass that brings operators into layouts; those behind them follow.

    Parameters
    ----------
    desired_layouts : mapping
        Operator -> the layout of its data, then that of its weights: ``["NHWC", "default"]``.
    """
    layouts = {str(name): tuple(wish) for name, wish in desired_layouts.items()}
    return _made("ConvertLayout", 3, convert_layout, desired_layouts=layouts)


def MergeComposite(pattern_table: Sequence[tuple[Any, ...]]) -> Pass:  # noqa: N802
    """Return the pass that puts what patterns match into functions.

    Parameters
    ----------
    pattern_table : sequence of (str, Pattern)
        Names and patterns of `tvm.relay.dataflow_pattern`. A third field, a check of a match, is
        not part of dlcompiler yet.
    """
    for name, *fields in pattern_table:
        if len(fields) != 1:
            raise GraphError(
                f"MergeComposite {name}", "a check of matches is not part of dlcompiler yet",
                expected="(name, pattern)",
            )  # fmt: skip
    table = [(str(name), pattern) for name, pattern in pattern_table]
    return _made("MergeComposite", 0, merge_composite, patterns=table)


def _without_effect(name: str, level: int, reason: str) -> Pass:
    def run(module: graph.Module) -> graph.Module:
        note(f"{name}: {reason}; the module stays as it is")
        return module

    return _made(name, level, run)


def AlterOpLayout() -> Pass:  # noqa: N802
    """Return a pass without effect: no schedule here asks for another layout of a graph."""
    return _without_effect("AlterOpLayout", 3, "no operator asks for another layout here")


def Legalize(legalize_map_attr_name: str = "FTVMLegalize") -> Pass:  # noqa: N802
    """Return a pass without effect: all operators of the table can be built."""
    del legalize_map_attr_name
    return _without_effect("Legalize", 1, "all operators are legal here")


def FastMath() -> Pass:  # noqa: N802
    """Return a pass without effect: a function has one meaning here."""
    return _without_effect("FastMath", 4, "exp, tanh and erf keep their accuracy here")


# -- passes of the user ----------------------------------------------------------------------------


def function_pass(
    pass_func: Any = None, opt_level: int = 0, name: str | None = None,
    required: Sequence[str] | None = None,
) -> Any:  # fmt: skip
    """Make a pass of a function or a class; also a decorator with options.

    Parameters
    ----------
    pass_func : callable or class
        ``f(func, mod, ctx)`` returns another function; a class has it as the method
        ``transform_function``.
    opt_level : int
        Least level at which a sequence runs it; [1].
    name : str, optional
        By default that of the function.
    required : sequence of str, optional
        Accepted, without effect.
    """

    def each(transform: Callable[..., Any], module: graph.Module) -> graph.Module:
        whole = IRModule.of(module)
        for key, function in module.functions.items():
            if not function.is_kernel:
                whole[key] = transform(function, whole, PassContext.current())
        return graph.ir.named(whole.graph)

    return _decorated(pass_func, PassInfo(name or "", opt_level, tuple(required or ())),
                      "transform_function", each)  # fmt: skip


def module_pass(
    pass_func: Any = None, opt_level: int = 0, name: str | None = None,
    required: Sequence[str] | None = None, traceable: bool = False,
) -> Any:  # fmt: skip
    """Make a pass of a function ``f(mod, ctx)``, or of a class with ``transform_module``.

    Parameters
    ----------
    pass_func, opt_level, name, required
        As for `function_pass`.
    traceable : bool
        Accepted, without effect.
    """
    del traceable

    def whole(transform: Callable[..., Any], module: graph.Module) -> graph.Module:
        made = transform(IRModule.of(module), PassContext.current())
        return graph.ir.named(module_of(made, "module_pass"))

    return _decorated(pass_func, PassInfo(name or "", opt_level, tuple(required or ())),
                      "transform_module", whole)  # fmt: skip


def _decorated(
    given: Any, info: PassInfo, method: str,
    run: Callable[[Callable[..., Any], graph.Module], graph.Module],
) -> Any:  # fmt: skip
    def decorate(target: Any) -> Any:
        own = PassInfo(info.name or target.__name__, info.opt_level, info.required)
        if not inspect.isclass(target):
            return Pass(own, partial(run, target))

        def make(*args: Any, **options: Any) -> Pass:
            return Pass(own, partial(run, getattr(target(*args, **options), method)))

        return make

    return decorate if given is None else decorate(given)


def PrintIR(header: str = "", show_meta_data: bool = False) -> Pass:  # noqa: N802
    """Return a pass that prints the module.

    Parameters
    ----------
    header : str
        Printed before it.
    show_meta_data : bool
        Print the constants, too.
    """

    def run(module: graph.Module) -> graph.Module:
        text = graph.module_text(module, metadata=show_meta_data)
        print(f"PrintIR({header}):\n{text}")  # noqa: T201  as in TVM
        return module

    return _made("PrintIR", 0, run)
