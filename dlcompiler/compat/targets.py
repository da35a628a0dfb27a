"""TVM's targets, such as ``"llvm -mcpu=skylake-avx512"``, converted to those of this project."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from dlcompiler import target as targets
from dlcompiler.compat.devices import GPUS, OTHERS, shared_bytes
from dlcompiler.compat.missing import REMOTE, Named
from dlcompiler.compat.notes import note
from dlcompiler.errors import TargetError
from dlcompiler.target import Target as Machine
from dlcompiler.target import gpus
from dlcompiler.target.detect import host
from dlcompiler.target.presets import X86_64_LEVELS

HERE = ("llvm", "cpu")
"""Kinds that mean machine code for this CPU."""

LEVELS: Mapping[str, str] = MappingProxyType(
    {
        **dict.fromkeys(("core2", "nehalem", "penryn", "westmere", "x86-64-v2"), "x86-64-v2"),
        **dict.fromkeys(("core-avx2", "haswell", "broadwell", "skylake", "x86-64-v3"), "x86-64-v3"),
        **dict.fromkeys(("alderlake", "znver1", "znver2", "znver3"), "x86-64-v3"),
        **dict.fromkeys(("skylake-avx512", "cascadelake", "cooperlake", "cannonlake"), "x86-64-v4"),
        **dict.fromkeys(("icelake-client", "icelake-server", "tigerlake"), "x86-64-v4"),
        **dict.fromkeys(("rocketlake", "sapphirerapids", "znver4", "znver5"), "x86-64-v4"),
        **dict.fromkeys(("x86-64-v4",), "x86-64-v4"),
        "x86-64": "x86-64",
    }
)
"""LLVM's name of a processor -> the level of x86-64 that it has at least."""

MODELS: Mapping[str, str] = MappingProxyType(
    {
        **{found.name: found.name for found in vars(gpus).values() if isinstance(found, Machine)},
        "titanx": "gtx-titan-x",
        "titanxp": "titan-x-pascal",
        "1080": "gtx-1080",
        "gtx1080": "gtx-1080",
        "1080ti": "gtx-1080",
        "a6000": "rtx-a6000",
    }
)
"""Value of ``-model`` -> the simulated target."""

_stack: ContextVar[tuple[Target, ...]] = ContextVar("classic_targets", default=())


@dataclass(frozen=True)
class Kind:
    """The kind of a target."""

    name: str

    def __str__(self) -> str:
        return self.name


class Target(Named):
    """A target of classic code; a context manager makes it the current one.

    Parameters
    ----------
    target : str, dict or Target
        A kind with flags, or a mapping with the key ``kind``.
    host : str or Target, optional
        Host of a device; has no effect here.
    """

    classic = "tvm.target.Target"

    def __init__(self, target: Any, host: Any = None) -> None:
        kind, attrs = _parse(target)
        self.kind = Kind(kind)
        """Its kind."""
        self.attrs = MappingProxyType(attrs)
        """Its flags, without the dash."""
        self.host = None if host is None else Target(host)
        """Host of a device; has no effect here."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Names under which classic code registers schedules for it."""
        name = self.kind.name
        if name in (*HERE, "c"):
            return ("cpu",)
        return (name, "gpu") if name in GPUS else (name,)

    @property
    def max_num_threads(self) -> int:
        """Largest number of threads of a block [1]: a flag, or the GPU's; 1 for a CPU."""
        return self._number("max_num_threads", resolve(self).limits.get("max_threads_per_block", 1))

    @property
    def thread_warp_size(self) -> int:
        """Number of threads of a warp [1]: a flag, or the GPU's."""
        return self._number("thread_warp_size", resolve(self).limits.get("warp_size", 1))

    @property
    def max_shared_memory_per_block(self) -> int:
        """Largest shared memory of a block [byte]: a flag, or the GPU's; 0 for a CPU."""
        return self._number("max_shared_memory_per_block", shared_bytes(resolve(self)))

    @property
    def arch(self) -> str:
        """The flag ``-arch``, or the architecture of the GPU: ``"sm_80"``; '' for a CPU."""
        given = str(self.attrs.get("arch", ""))
        return given or (resolve(self).cpu if self.kind.name in GPUS else "")

    @property
    def model(self) -> str:
        """The flag ``-model``, or ``"unknown"``."""
        return str(self.attrs.get("model", "unknown"))

    @property
    def libs(self) -> tuple[str, ...]:
        """The flag ``-libs``: libraries, which are not used here."""
        return tuple(word for word in str(self.attrs.get("libs", "")).split(",") if word)

    def _number(self, flag: str, otherwise: int) -> int:
        try:
            return int(self.attrs.get(flag, otherwise))
        except ValueError:
            raise TargetError(
                "read a target",
                f"-{flag} is no number",
                got=repr(self.attrs[flag]),
                excerpt=str(self),
            ) from None

    @property
    def mcpu(self) -> str:
        """The flag ``-mcpu``, or ''."""
        return str(self.attrs.get("mcpu", ""))

    @property
    def device_name(self) -> str:
        """The flag ``-device``, or ''."""
        return str(self.attrs.get("device", ""))

    def __enter__(self) -> Target:
        _stack.set((*_stack.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _stack.set(_stack.get()[:-1])

    @staticmethod
    def current(allow_none: bool = True) -> Target | None:
        """Return the target of the innermost ``with``.

        Raises
        ------
        TargetError
            If there is none and `allow_none` is false.
        """
        stack = _stack.get()
        if stack:
            return stack[-1]
        if allow_none:
            return None
        raise TargetError("current target", "no target is set", hint="with tvm.target.Target(…):")

    def __str__(self) -> str:
        return " ".join(
            (self.kind.name, *(f"-{name}={value}" for name, value in self.attrs.items()))
        )

    def __repr__(self) -> str:
        return f"Target({str(self)!r})"


def create(target: Any) -> Target:
    """Return a target: TVM's older name of the constructor."""
    return Target(target)


def _parse(target: Any) -> tuple[str, dict[str, Any]]:
    """Return kind and flags."""
    if isinstance(target, Target):
        return target.kind.name, dict(target.attrs)
    if isinstance(target, Mapping):
        attrs = {str(key): value for key, value in target.items() if key != "kind"}
        return str(target.get("kind", "")), attrs
    if not isinstance(target, str) or not target.strip():
        raise TargetError(
            "read a target", "not a target", got=repr(target), expected="'llvm -mcpu=…'"
        )
    try:
        kind, *words = shlex.split(target)
    except ValueError as error:  # A quotation mark is not closed.
        raise TargetError("read a target", str(error), got=repr(target)) from None
    flags: dict[str, Any] = {}
    for word in words:
        name, _, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise TargetError(
                "read a target", "not a flag", got=word, expected="-name=value", excerpt=target
            )
        flags[name] = value
    maker, _, model = kind.partition("/")
    if maker == "nvidia" and model:  # a tag, such as nvidia/geforce-rtx-3090
        for prefix in ("nvidia-", "geforce-", "tesla-"):
            model = model.removeprefix(prefix)
        return "cuda", {"model": model, **flags}
    return kind, flags


def resolve(target: Any) -> targets.Target:
    """Convert a classic target to a target of this project.

    A CPU whose code cannot run on this machine is replaced by this machine, with a note. The result
    of a program is the same.

    Parameters
    ----------
    target : str, dict, Target or None
        None: the current target, or ``llvm`` outside any ``with``.

    Raises
    ------
    TargetError
        If the kind is unknown or not part of dlcompiler yet, or of another processor family.
    """
    if isinstance(target, targets.Target):
        return target
    if target is None:
        target = Target.current() or "llvm"
    wanted = Target(target)
    kind = wanted.kind.name
    if kind in GPUS:  # simulated, whatever devices are here
        return _gpu(wanted)
    if kind in targets.names():
        return targets.resolve(kind)
    if kind not in HERE:
        raise _refused(kind, str(wanted))
    triple = str(wanted.attrs.get("mtriple", wanted.attrs.get("target", "")))
    _check_triple(triple, str(wanted))
    for text in _degradations(wanted):
        note(f"target {str(wanted)!r}: {text}; the code is for this machine ({host().llvm_cpu})", 4)
    return targets.resolve("cpu")


def kind_of(target: Any) -> str:
    """Return the kind of a classic target, such as ``"cuda"``."""
    if isinstance(target, targets.Target):
        return target.language
    return Target(target or Target.current() or "llvm").kind.name


def _gpu(wanted: Target) -> targets.Target:
    """Return the GPU of a target's flag ``-model`` or ``-arch``, or a typical one."""
    model = str(wanted.attrs.get("model", ""))
    name = MODELS.get(model.lower().replace(" ", ""))
    if model and name is None and model != "unknown":
        note(f"target {str(wanted)!r}: the GPU {model} is not known; typical limits are used")
    arch = str(wanted.attrs.get("arch", wanted.attrs.get("mcpu", "")))
    if name is None and arch:
        name = next((each for each in MODELS.values() if targets.resolve(each).cpu == arch), None)
        if name is None:
            note(f"target {str(wanted)!r}: no GPU of {arch} is known; typical limits are used")
    return targets.resolve(name or "gpu")


def cuda(model: str = "unknown", arch: str | None = None, options: object = None) -> Target:
    """Return the target of a simulated GPU.

    Parameters
    ----------
    model : str
        ``"v100"``, ``"titanx"``, …: whose limits it has.
    arch : str, optional
        ``"sm_80"``, …: a GPU of this architecture, if the model is not known.
    options
        Accepted, without effect.
    """
    del options
    return Target(f"cuda -model={model}" + (f" -arch={arch}" if arch else ""))


def opencl(model: str = "unknown", options: object = None) -> Target:
    """Return the target of a simulated GPU; see `cuda`."""
    del options
    return Target(f"opencl -model={model}")


def rocm(model: str = "unknown", options: object = None) -> Target:
    """Return the target of a simulated GPU, whose code is HIP; see `cuda`."""
    del options
    return Target(f"rocm -model={model}")


def vulkan(model: str = "unknown", options: object = None) -> Target:
    """Return the target of a simulated GPU; see `cuda`."""
    del options
    return Target(f"vulkan -model={model}")


def _refused(kind: str, text: str) -> TargetError:
    if kind in OTHERS:
        return TargetError(
            f"build for {text}", f"the target {kind} is not part of dlcompiler yet", because=REMOTE
        )
    if kind in ("stackvm", "hybrid", "vta"):
        return TargetError(
            f"build for {text}", f"the target {kind} is not part of dlcompiler yet",
            because="it comes in a later version", hint="target='llvm'",
        )  # fmt: skip
    return TargetError(
        f"build for {text}", "unknown kind of target", got=kind, expected="llvm",
        hint="'llvm' is this machine",
    )  # fmt: skip


def _check_triple(triple: str, text: str) -> None:
    """Raise an error if this machine cannot load code for a target."""
    family, here = triple.partition("-")[0], host().triple.partition("-")[0]
    if family and family not in (here, {"x86_64": "x86-64"}.get(here)):
        raise TargetError(
            f"build for {text}",
            "code for another family of processors cannot be loaded here",
            got=family, expected=here,
            hint="dlcompiler.cross_compile makes an object of it; target='llvm' is this machine",
        )  # fmt: skip


def _degradations(wanted: Target) -> list[str]:
    """Return the flags of a target that have no effect here, with the reasons."""
    here = {feature[1:] for feature in host().features if feature.startswith("+")}
    found = []
    if wanted.mcpu not in ("", "native", host().llvm_cpu):
        level = LEVELS.get(wanted.mcpu)
        if level is None:
            found.append(f"the processor {wanted.mcpu} is not known here")
        elif lacking := sorted(set(X86_64_LEVELS[level]) - here):
            found.append(f"this machine lacks {', '.join(lacking)}")
    features = [word for word in str(wanted.attrs.get("mattr", "")).split(",") if word]
    if unmet := [word for word in features if word[1:] not in here and word.startswith("+")]:
        found.append(f"this machine lacks {', '.join(word[1:] for word in unmet)}")
    if libraries := wanted.attrs.get("libs"):
        found.append(f"the libraries {libraries} are ignored")
    return found
