"""Workloads: an operator with its parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from dlcompiler.errors import TuningError
from dlcompiler.terminal import escaped

Parameter: TypeAlias = int | str


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """An operator with its shapes and dtypes; compares and hashes by name and value.

    Examples
    --------
    >>> w = Workload.of("matmul", m=1024, n=1024, k=512, dtype="float32")
    >>> w["k"], str(w)
    (512, 'matmul(m=1024, n=1024, k=512, dtype=float32)')
    """

    op: str
    """Name in the registry of operators."""
    params: tuple[tuple[str, Parameter], ...]
    """Its parameters in the operator's order, by name."""

    def __post_init__(self) -> None:
        for name, value in self.params:
            if isinstance(value, bool) or not isinstance(value, int | str):
                raise TuningError(
                    f"workload {self.op}", f"the parameter {name} is neither a number nor a name",
                    got=repr(value), expected="an int or a str",
                )  # fmt: skip

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Workload) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[str, frozenset[tuple[str, Parameter]]]:
        return self.op, frozenset(self.params)

    @classmethod
    def of(cls, op: str, /, **params: Parameter) -> Workload:
        """Make a workload from named parameters."""
        return cls(op, tuple(params.items()))

    def __getitem__(self, name: str) -> Any:
        return self.as_dict()[name]

    def as_dict(self) -> dict[str, Parameter]:
        """Return the parameters by name."""
        return dict(self.params)

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return {"op": self.op, "params": self.as_dict()}

    @classmethod
    def from_json(cls, data: object) -> Workload:
        """Read what `to_json` wrote.

        Raises
        ------
        TuningError
            If it is something else.
        """
        match data:
            case {"op": str(op), "params": dict(params)} if all(isinstance(n, str) for n in params):
                return cls(op, tuple(params.items()))
        raise TuningError(
            "read a workload", "not a workload", got=repr(data), expected='{"op": …, "params": {…}}'
        )

    def __str__(self) -> str:
        return escaped(f"{self.op}({', '.join(f'{name}={value}' for name, value in self.params)})")
