"""Where a number comes from: it was measured, simulated or predicted, and on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["measured", "simulated", "predicted"]
KINDS: tuple[Kind, ...] = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Provenance:
    """How a number was obtained, and on what.

    Numbers of different kinds are never compared as if they were of one kind.

    Examples
    --------
    >>> print(Provenance("measured", "AMD EPYC 7543"))
    measured on AMD EPYC 7543
    >>> print(Provenance("predicted", "roofline"))
    predicted by roofline
    """

    kind: Kind = "measured"
    """``measured`` on a machine, ``simulated`` for a machine, or ``predicted`` by a model."""
    on: str = ""
    """The machine, the simulated target or the model; '' if it is not named."""

    def __str__(self) -> str:
        if not self.on:
            return self.kind
        return f"{self.kind} {'by' if self.kind == 'predicted' else 'on'} {self.on}"

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return {"kind": self.kind, "on": self.on}

    @classmethod
    def from_json(cls, data: object) -> Provenance:
        """Read what `to_json` wrote.

        Raises
        ------
        ValueError
            If it is something else, with the reason.
        """
        if not isinstance(data, Mapping) or set(data) != {"kind", "on"}:
            raise ValueError("not an object with kind and on")
        kind = next((known for known in KINDS if known == data["kind"]), None)
        if kind is None:
            raise ValueError(f"the kind is not one of: {', '.join(KINDS)}")
        if not isinstance(data["on"], str):
            raise ValueError("on is not a text")
        return cls(kind, data["on"])


MEASURED = Provenance()
"""Measured, on a machine that is not named."""
