"""Classic TVM's ``vta.build_module``: `lower` and `build` for the current environment."""

from __future__ import annotations

from typing import Any

from dlcompiler.compat import building
from dlcompiler.compat.building import LoweredModule
from dlcompiler.compat.contexts import PassContext
from dlcompiler.compat.environments import get_env
from dlcompiler.compat.missing import reporter


def lower(*args: Any, **options: Any) -> LoweredModule:
    """Lower a schedule for the accelerator of the current environment; see `tvm.lower`."""
    return building.lower(*args, **options, machine=get_env().accelerator.target)


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
