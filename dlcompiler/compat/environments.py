"""VTA's `Environment`: the sizes of an accelerator, its scopes, dtypes, pragmas and intrinsic."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any

from dlcompiler import te
from dlcompiler.compat.missing import Named
from dlcompiler.compat.targets import Target
from dlcompiler.errors import TargetError
from dlcompiler.target import Target as Machine
from dlcompiler.target.accelerators import Accelerator
from dlcompiler.target.accelerators.vta import DE10, PYNQ, ULTRA96, VtaConfig, vta

BOARDS: Mapping[str, VtaConfig] = MappingProxyType(
    {"sim": PYNQ, "tsim": PYNQ, "pynq": PYNQ, "ultra96": ULTRA96, "de10nano": DE10}
)
"""``TARGET`` of a configuration -> clock and bus of the board; of any other one the PYNQ's."""

DEFAULT: Mapping[str, Any] = MappingProxyType(
    {
        "TARGET": "sim",
        "HW_VER": "0.0.2",
        "LOG_INP_WIDTH": 3,
        "LOG_WGT_WIDTH": 3,
        "LOG_ACC_WIDTH": 5,
        "LOG_BATCH": 0,
        "LOG_BLOCK": 4,
        "LOG_UOP_BUFF_SIZE": 15,
        "LOG_INP_BUFF_SIZE": 15,
        "LOG_WGT_BUFF_SIZE": 18,
        "LOG_ACC_BUFF_SIZE": 17,
    }
)
"""The configuration that VTA ships."""

_OWN = frozenset(each.name for each in fields(VtaConfig))
_DERIVED = frozenset({"LOG_BLOCK", "LOG_OUT_WIDTH", "LOG_OUT_BUFF_SIZE"})
_current: ContextVar[tuple[Environment, ...]] = ContextVar("classic_environments", default=())


class Mock(Named):
    """Pragmas and an intrinsic that leave instructions out, to time one engine alone.

    The instructions that are left out only pass tokens. A program with one of them computes
    nothing: it can only be timed.
    """

    classic = "vta.Environment.mock"
    dma_copy = "skip_dma_copy"
    """Pragma of a copy that is left out."""
    alu = "skip_alu"
    """Pragma of elementwise instructions that are left out."""

    def __init__(self, gemm: te.TensorIntrin) -> None:
        parts = {mode: f"skip_{part}" for mode, part in gemm.parts.items()}
        name = f"skip_{gemm.name}"
        self.gemm = replace(gemm, name=name, id=name, parts=parts)
        """Intrinsic whose instructions are left out."""


class Environment(Named):
    """A configuration of VTA; a context manager makes it the current one.

    Parameters
    ----------
    cfg : mapping
        ``TARGET`` and sizes as binary logarithms: ``LOG_BATCH``, ``LOG_BLOCK``, …; those that are
        missing are the usual ones. ``profile`` and ``lowering`` are those of
        `dlcompiler.target.accelerators.vta.VtaConfig`.
    """

    classic = "vta.Environment"
    dma_copy = "dma_copy"
    """Pragma of a stage that one copy instruction moves."""
    alu = "alu"
    """Pragma of a stage that elementwise instructions compute."""

    def __init__(self, cfg: Mapping[str, Any]) -> None:
        self.cfg_dict = {**DEFAULT, **cfg}
        """The configuration."""
        for name in self.cfg_dict:
            if name.startswith("LOG_") and name not in _OWN | _DERIVED:
                raise TargetError(
                    "read a configuration of VTA", "unknown size", got=name,
                    expected=", ".join(sorted(_OWN | _DERIVED)),
                )  # fmt: skip
        self.TARGET = str(self.cfg_dict["TARGET"])
        """``"sim"``, ``"tsim"`` or a board, all of which are simulated."""
        given = {name: value for name, value in self.cfg_dict.items() if name in _OWN}
        block = self.cfg_dict["LOG_BLOCK"]
        given = {"LOG_BLOCK_IN": block, "LOG_BLOCK_OUT": block, **given}
        self.config = replace(BOARDS.get(self.TARGET, PYNQ), **given)
        """The parameters as this project names them."""
        self.accelerator: Accelerator = vta("vta", self.config)
        """The accelerator."""
        for name, value in _numbers(self.config, self.accelerator).items():
            setattr(self, name, value)

    @cached_property
    def gemm(self) -> te.TensorIntrin:
        """The intrinsic of a GEMM instruction, for ``tensorize``."""
        sizes = f"{self.config.batch}x{self.config.block_out}x{self.config.block_in}"
        intrinsic = te.tensor_intrin(f"vta_gemm_{sizes}")
        memory = self.accelerator.memory
        dtypes = (memory("inp").dtype, memory("wgt").dtype, memory("acc").dtype)
        if dtypes != ("int8", "int8", "int32"):
            raise TargetError(
                "vta.get_env().gemm", "there is no intrinsic for these dtypes",
                got=", ".join(dtypes), expected="int8, int8, int32",
            )  # fmt: skip
        return intrinsic

    @cached_property
    def mock(self) -> Mock:
        """Pragmas and an intrinsic that leave instructions out."""
        return Mock(self.gemm)

    @property
    def pkg(self) -> Environment:
        """The configuration: this object."""
        return self

    @property
    def cfg_json(self) -> str:
        """The configuration as JSON."""
        return json.dumps(self.cfg_dict)

    @property
    def MODEL(self) -> str:  # noqa: N802 - VTA's name
        """Name of the configuration: ``"sim_1x16_i8w8a32_15_15_18_17"``."""
        cfg, sizes = self.config, ("UOP", "INP", "WGT", "ACC")
        depths = "_".join(str(getattr(cfg, f"LOG_{name}_BUFF_SIZE")) for name in sizes)
        widths = (1 << getattr(cfg, f"LOG_{name}_WIDTH") for name in ("INP", "WGT", "ACC"))
        return f"{self.TARGET}_{cfg.batch}x{cfg.block_out}_" + "i{}w{}a{}_".format(*widths) + depths

    @property
    def target_host(self) -> str:
        """The target of the host: this CPU."""
        return "llvm"

    @property
    def target(self) -> Target:
        """The target of the accelerator."""
        return Target(f"ext_dev -keys=vta,cpu -device=vta -model={self.MODEL}", self.target_host)

    @property
    def target_vta_cpu(self) -> Target:
        """The target of what the host computes: this CPU."""
        return Target(self.target_host)

    def __enter__(self) -> Environment:
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _current.set(_current.get()[:-1])

    def __repr__(self) -> str:
        return f"Environment({self.MODEL})"


def _numbers(config: VtaConfig, accelerator: Accelerator) -> dict[str, Any]:
    """Return the attributes of an environment that follow from its sizes, by VTA's names."""
    numbers: dict[str, Any] = {
        each.name: getattr(config, each.name)
        for each in fields(config)
        if each.name.startswith("LOG_")
    }
    numbers |= {
        "BATCH": config.batch, "BLOCK_IN": config.block_in, "BLOCK_OUT": config.block_out,
        "UOP_BUFF_SIZE": 1 << config.LOG_UOP_BUFF_SIZE,
        "UOP_WIDTH": 32, "UOP_ELEM_BYTES": accelerator.memory("uop").element_bytes,
    }  # fmt: skip
    for name in ("inp", "wgt", "acc", "out"):
        memory, upper = accelerator.memory(name), name.upper()
        numbers |= {
            f"{name}_scope": accelerator.scope_of(name),
            f"{name}_dtype": memory.dtype,
            f"{upper}_WIDTH": 8 * memory.element_bytes // memory.numbers,
            f"{upper}_ELEM_BYTES": memory.element_bytes,
            f"{upper}_ELEM_BITS": 8 * memory.element_bytes,
            f"{upper}_BUFF_SIZE": memory.bytes,
        }
    return numbers


_default = Environment(DEFAULT)


def get_env() -> Environment:
    """Return the environment of the innermost ``with``, or the usual one."""
    stack = _current.get()
    return stack[-1] if stack else _default


def accelerator_target(target: Any) -> Machine | None:
    """Return the current accelerator if a classic target means one, else None."""
    if isinstance(target, Machine) or target is None:
        return None
    return get_env().accelerator.target if Target(target).kind.name == "ext_dev" else None
