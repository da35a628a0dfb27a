"""Classic TVM's ``vta.build_module``: `lower` and `build` for the current environment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dlcompiler.compat import building
from dlcompiler.compat.building import LoweredModule
from dlcompiler.compat.contexts import PassContext
from dlcompiler.compat.environments import get_env
from dlcompiler.compat.missing import reporter


def lower(
    inp: Any,
    args: Sequence[Any] | None = None,
    name: str = "main",
    binds: object = None,
    simple_mode: bool = False,
) -> LoweredModule:
    """Lower a schedule for the accelerator of the current environment; see `tvm.lower`."""
    machine = get_env().accelerator.target
    return building.lower(inp, args, name, binds, simple_mode, machine)


def build(
    inputs: Any, args: Any = None, target: Any = None, target_host: Any = None, **options: Any
) -> Any:
    """Build a schedule for the accelerator of the current environment; see `tvm.build`.

    Parameters
    ----------
    inputs, args, **options
        As of `tvm.build`.
    target, target_host
        By default the accelerator; ``"llvm"`` builds for this CPU.
    """
    target = get_env().target if target is None else target
    return building.build(inputs, args, target, target_host, **options)


def build_config(debug_flag: int = 0, **options: Any) -> PassContext:
    """Return a context for `lower` and `build`.

    Parameters
    ----------
    debug_flag : int
        Accepted, without effect: ``module.get_source()`` has the instructions.
    **options
        As of `tvm.transform.PassContext`.
    """
    del debug_flag
    return PassContext(**options)


__getattr__ = reporter(__name__)
__all__ = ["build", "build_config", "lower"]
