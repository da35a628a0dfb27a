"""Check that a GPU has the instructions of a program's tensor intrinsics."""

from __future__ import annotations

from dlcompiler.errors import TargetError
from dlcompiler.ir import IntrinsicCall, PrimFunc, walk
from dlcompiler.target import Target
from dlcompiler.target.gpus import INSTRUCTIONS


def check_intrinsics(func: PrimFunc, target: Target) -> None:
    """Refuse an intrinsic whose instruction the processor does not have.

    For a target whose processor is not known, such as ``opencl``, an intrinsic of one thread is
    the loops of its declaration.

    Parameters
    ----------
    func
        A program as code would be generated from it.
    target
        A target of kind ``"gpu"``.

    Raises
    ------
    TargetError
        The message names the intrinsic, and the processors that have its instruction.
    """
    for call in walk(func.body):
        if not isinstance(call, IntrinsicCall) or call.part in target.emits or not target.cpu:
            continue
        if call.part in INSTRUCTIONS:
            major, minor = INSTRUCTIONS[str(call.part)]
            raise TargetError(
                f"build {func.name} for {target.name}",
                f"the processor has no instruction for {call.intrinsic.name}",
                got=target.cpu,
                expected=f"sm_{major}{minor} or later",
                hint="leave the step tensorize out, or choose another target",
            )
