"""The options with which LLVM compiles a module, and whether this machine can run the code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dlcompiler.errors import TargetError
from dlcompiler.target import Target
from dlcompiler.target.detect import host
from dlcompiler.target.presets import X86_64_LEVELS


@dataclass(frozen=True, slots=True)
class Options:
    """How LLVM compiles a module.

    By default LLVM neither vectorizes nor unrolls loops: the schedule decides this, and the
    generated code shows its steps.
    """

    triple: str
    """LLVM's target triple."""
    cpu: str
    """LLVM's name of the processor: this machine's, or a level of x86-64."""
    features: tuple[str, ...] = ()
    """Features beyond those of ``cpu``, each ``"+name"`` or ``"-name"``."""
    opt_level: int = 3
    """0 to 3."""
    pass_level: int | None = None
    """Level of LLVM's passes, 0 to 3; None: `opt_level`, which is also that of code generation."""
    loop_vectorize: bool = False
    """Let LLVM make vectors of loops that the schedule left scalar."""
    slp_vectorize: bool = True
    """Let LLVM join neighbouring scalar operations, as in an unrolled tile."""
    unroll: bool = False
    """Let LLVM unroll loops that the schedule left rolled."""

    @classmethod
    def for_target(cls, target: Target, **changes: Any) -> Options:
        """Return the options for a target; ``changes`` are fields by name.

        Raises
        ------
        TargetError
            The target's code is not LLVM IR.
        """
        if target.language != "llvm":
            raise TargetError(
                f"compile for {target.name}",
                "its code is not LLVM IR",
                got=f"language {target.language!r}",
                hint="target='cpu' is machine code, to be verified, measured and tuned",
            )
        fields = {"triple": target.triple, "cpu": target.cpu, "features": target.features}
        return cls(**{**fields, **changes})

    def check(self) -> None:
        """Refuse options that would make LLVM end the process, or whose code cannot run here.

        Raises
        ------
        TargetError
            The processor is of another family, unknown, or has features that this one lacks.
        """
        here = host()
        family, own = self.triple.partition("-")[0], here.triple.partition("-")[0]
        if family != own:
            raise TargetError(
                f"compile for {self.triple}",
                "code for another family of processors cannot be loaded here",
                got=family,
                expected=own,
                hint="cross_compile makes an object of it",
            )
        levels = X86_64_LEVELS if own == "x86_64" else {"generic": ()}
        if self.cpu != here.llvm_cpu and self.cpu not in levels:
            raise TargetError(
                f"compile for {self.triple}",
                "not a processor that this package compiles for",
                got=repr(self.cpu),
                expected=", ".join(repr(name) for name in (here.llvm_cpu, *levels)),
            )
        implied = () if self.cpu == here.llvm_cpu else levels[self.cpu]
        self._check_features(frozenset(implied), frozenset(here.features))

    def _check_features(self, implied: frozenset[str], here: frozenset[str]) -> None:
        known = {feature[1:] for feature in here}
        unknown = [f for f in self.features if f[:1] not in ("+", "-") or f[1:] not in known]
        if unknown:
            raise TargetError(
                f"compile for {self.cpu}",
                "not a feature of this family of processors",
                got=", ".join(unknown),
                expected="names with a sign, as '+avx2'",
            )
        switched_off = {f[1:] for f in self.features if f.startswith("-")}
        needed = (implied - switched_off) | {f[1:] for f in self.features if f.startswith("+")}
        lacking = sorted(name for name in needed if f"+{name}" not in here)
        if lacking:
            raise TargetError(
                f"compile for {self.cpu}",
                "this machine cannot run the code",
                got=f"code that uses {', '.join(lacking)}",
                because="the processor here lacks it",
                hint="build for target='cpu'",
            )
