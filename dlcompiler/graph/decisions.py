"""Decisions of passes: what was decided about which calls, by which rule, and what it changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from dlcompiler.graph.ir.nodes import AttrValue

Verdict: TypeAlias = Literal[
    "fused", "not fused", "folded", "not folded", "rewritten", "removed", "laid out", "reused",
    "not reused", "placed",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Effect:
    """What a decision changes, compared with the alternative."""

    bytes: int = 0
    """Bytes that are not written and read any more; negative if there are more; [byte]."""
    kernels: int = 0
    """Kernels that are not started any more; [1]."""
    seconds: float | None = None
    """Time saved, once it was measured or predicted; [s]."""
    provenance: str = ""
    """How `seconds` was found: ``measured``, ``predicted`` or ``simulated``, and on what."""


@dataclass(frozen=True, slots=True)
class Decision:
    """One decision of a pass."""

    made_by: str
    """Name of the pass."""
    subject: tuple[str, ...]
    """Names of the calls that it is about; of an edge: producer, consumer."""
    verdict: Verdict
    rule: str
    """Key of the rule that decided, in the closed list of the pass."""
    reason: str
    """The rule in words, about this subject."""
    remedy: str = ""
    """What would lead to another verdict."""
    alternatives: tuple[str, ...] = ()
    """What else was possible."""
    effect: Effect = Effect()

    @property
    def id(self) -> str:
        """Names the decision; the same in each run of the pass on an equal module."""
        return f"{self.made_by}:{'->'.join(self.subject)}"

    def to_dict(self) -> dict[str, AttrValue | dict[str, AttrValue]]:
        """Return the decision as values that ``json`` can write."""
        effect: dict[str, AttrValue] = {
            "bytes": self.effect.bytes, "kernels": self.effect.kernels,
            "seconds": self.effect.seconds, "provenance": self.effect.provenance,
        }  # fmt: skip
        return {
            "id": self.id, "made_by": self.made_by, "subject": self.subject,
            "verdict": self.verdict, "rule": self.rule, "reason": self.reason,
            "remedy": self.remedy, "alternatives": self.alternatives, "effect": effect,
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision that the user forces or forbids."""

    kind: Literal["fuse", "keep apart"]
    subject: tuple[str, ...]
    """Names of calls: producer, consumer."""
