"""What a mutant is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.mutants.patching import Patch

Make = Callable[[Patch], None]


@dataclass(frozen=True)
class Mutant:
    """A mistake that someone could make in the compiler."""

    name: str
    file: str
    """Where the mistake would be, below ``dlcompiler/``."""
    make: Make
    quick: bool = False
    """Whether the test suite tries it each time."""
    tests: str = ""
    """The folder, or the file, of unit tests to ask."""

    @property
    def meaning(self) -> str:
        return (self.make.__doc__ or "").strip()


class Family(list[Mutant]):
    """The mutants of one part of the compiler; used as a decorator."""

    def __call__(
        self, file: str, *, quick: bool = False, tests: str = ""
    ) -> Callable[[Make], Make]:
        package = tests or file.partition("/")[0]

        def add(make: Make) -> Make:
            self.append(Mutant(make.__name__.replace("_", "-"), file, make, quick, package))
            return make

        return add
