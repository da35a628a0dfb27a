"""Configs: a config gives one value to each knob of a space."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from dlcompiler.display import render
from dlcompiler.errors import TuningError
from dlcompiler.space.knob import Value, as_value, is_value, value_key
from dlcompiler.terminal import escaped


class Config:
    """One value for each knob of a space, by name; compares and hashes by value.

    `Space` makes configs: `Space.at`, `Space.config`, `Space.sample`. A template reads
    ``cfg["tile_m"]`` or ``cfg.tile_m``.

    Parameters
    ----------
    values : mapping of str to Value
        A value for each knob.
    fingerprint : str
        The fingerprint of the space.
    """

    __slots__ = ("_fingerprint", "_values")

    def __init__(self, values: Mapping[str, Value], fingerprint: str) -> None:
        self._values = MappingProxyType(dict(values))
        self._fingerprint = fingerprint

    @property
    def values(self) -> Mapping[str, Value]:
        """The value of each knob by name, in the order of the space."""
        return self._values

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the space that made the config."""
        return self._fingerprint

    def __getitem__(self, name: str) -> Any:
        if name not in self._values:
            raise TuningError(
                f"read the knob {name!r} of a config", "there is no such knob",
                expected=", ".join(self._values),
            )  # fmt: skip
        return self._values[name]

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_") and name in self._values:
            return self._values[name]
        raise AttributeError(f"no knob {name!r}; the knobs are: {', '.join(self._values)}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def _key(self) -> tuple[object, ...]:
        items = ((name, value_key(value)) for name, value in self._values.items())
        return self._fingerprint, frozenset(items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._values]

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._values.items())
        return escaped(f"Config({values})")

    def _repr_html_(self) -> str:
        return render("config", self)

    def to_json(self) -> dict[str, Any]:
        """Return a value that ``json`` can write."""
        return {"values": dict(self._values), "fingerprint": self._fingerprint}

    @classmethod
    def from_json(cls, data: object) -> Config:
        """Read what `to_json` wrote; `Space.adopt` tells whether a space still has it.

        Raises
        ------
        TuningError
            If it is something else.
        """
        match data:
            case {"values": dict(values), "fingerprint": str(fingerprint)} if all(
                isinstance(name, str) and is_value(as_value(value))
                for name, value in values.items()
            ):
                read = {name: as_value(value) for name, value in values.items()}
                return cls(read, fingerprint)
        raise TuningError(
            "read a config", "not a config", got=repr(data),
            expected='{"values": {knob: value}, "fingerprint": …}',
        )  # fmt: skip
