"""Decisions of passes: what was decided about which calls, by which rule, and what it changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias, get_args

from dlcompiler.graph.ir.attributes import AttrValue

Verdict: TypeAlias = Literal[
    "fused", "not fused", "folded", "not folded", "rewritten", "not rewritten", "removed",
    "laid out", "not laid out", "reused", "not reused", "placed",
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
        """What it is about; the same in each run of the pass on an equal module."""
        return f"{self.made_by}:{'->'.join(self.subject)}"

    def to_dict(self) -> dict[str, AttrValue | dict[str, AttrValue]]:
        """Return the decision as values that ``json`` can write."""
        return {
            "id": self.id, "made_by": self.made_by, "subject": self.subject,
            "verdict": self.verdict, "rule": self.rule, "reason": self.reason,
            "remedy": self.remedy, "alternatives": self.alternatives,
            "effect": asdict(self.effect),
        }  # fmt: skip


def decisions_json(decisions: Iterable[Decision]) -> str:
    """Return decisions as JSON: a list of objects, each with an ``id`` of its own.

    Parameters
    ----------
    decisions : iterable of Decision
        Such as ``module.decisions()``.

    Notes
    -----
    A pass may decide several times about one call. The second decision then has ``#2`` at the end
    of its id. Equal modules get equal ids.
    """
    return json.dumps(rows_of(decisions), indent=1)


def rows_of(decisions: Iterable[Decision]) -> list[dict[str, Any]]:
    """Return decisions as values that ``json`` can write, each with an ``id`` of its own."""
    count: Counter[str] = Counter()
    rows = []
    for decision in decisions:
        count[decision.id] += 1
        number = count[decision.id]
        own = decision.id if number == 1 else f"{decision.id}#{number}"
        rows.append({**decision.to_dict(), "id": own})
    return rows


def decision_of(row: Mapping[str, Any]) -> Decision:
    """Return the decision that `rows_of` wrote as a row.

    Raises
    ------
    KeyError, TypeError, ValueError
        If the row is none.
    """
    effect = row["effect"]
    if row["verdict"] not in get_args(Verdict):
        raise ValueError(f"{row['verdict']!r} is no verdict")
    return Decision(
        _text(row["made_by"]), _texts(row["subject"]), row["verdict"], _text(row["rule"]),
        _text(row["reason"]), _text(row["remedy"]), _texts(row["alternatives"]),
        Effect(_whole(effect["bytes"]), _whole(effect["kernels"]), _seconds(effect["seconds"]),
               _text(effect["provenance"])),
    )  # fmt: skip


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is not a list of texts")
    return tuple(map(_text, value))


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not an integer")
    return value


def _seconds(value: object) -> float | None:
    if value is not None and (not isinstance(value, int | float) or isinstance(value, bool)):
        raise TypeError(f"{value!r} is not a number of seconds")
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class Wish:
    """A decision that the user forces or forbids."""

    kind: Literal["fuse", "keep apart"]
    subject: tuple[str, ...]
    """Names of calls: producer, consumer."""
    beside: tuple[str, ...] = ()
    """Calls that were named like a part of these (``bn.scale`` of ``bn``) when it was wished: they
    are no parts."""
