"""The classes of errors, and the layout of their texts.

A ``UserError`` is a mistake that the caller can correct; an ``InternalError`` is a bug of this
project. Both have the same layout. The parts of the text are attributes, for views::

    ScheduleError: vectorize C.k: a reduction axis cannot be vectorized
      got       axis k of stage C (reduction, extent 1024)
      because   all lanes would update C[i, j]: iterations k=0 and k=1 write the same element
      hint      vectorize j, the innermost data axis
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dlcompiler.terminal import escaped

_LABEL_COLUMNS = 10
MAX_VALUES = 8
"""Most numbers in a message of a running kernel, whose memory for them is fixed; [1]."""


def filled(template: str, values: Sequence[object]) -> str:
    """Return a text with ``{0}``, ``{1}`` … replaced by values, and ``{{`` by a brace.

    >>> filled("index {0} of {{extent}}", [7])
    'index 7 of {extent}'
    """

    def text(match: re.Match[str]) -> str:
        return match[0][0] if match[1] is None else str(values[int(match[1])])

    return re.sub(r"\{\{|\}\}|\{([0-9])\}", text, template)


def as_template(text: str) -> str:
    """Return a template from which `filled` produces this text: braces are doubled."""
    return text.replace("{", "{{").replace("}", "}}")


def shown_number(value: object) -> str:
    """Return a number as text, also an integer with more digits than Python prints.

    >>> shown_number(2.5), shown_number(10**5000)
    ('2.5', 'an integer of 16610 bits')
    """
    if isinstance(value, int) and value.bit_length() > _PRINTED_BITS:
        return f"an integer of {value.bit_length()} bits"
    return str(value)


_PRINTED_BITS = 512


class DLCompilerError(RuntimeError):
    """Base class of all errors that this package raises on purpose.

    It is also a ``RuntimeError``, like ``TVMError`` of classic TVM, which existing code may catch.

    Parameters
    ----------
    operation : str
        The operation that failed, in the user's words: ``"vectorize C.k"``.
    problem : str
        What is wrong, in one line without a full stop. If it is empty, `operation` is the whole
        text, as in errors that users raise.
    got, expected, because, hint, excerpt : str, optional
        The lines below the first; one that is ``None`` is not printed.

    Examples
    --------
    >>> print(UserError("split C.i", "the factor must be positive", got="0"))
    split C.i: the factor must be positive
      got       0
    """

    def __init__(
        self,
        operation: str,
        problem: str = "",
        *,
        got: object = None,
        expected: object = None,
        because: str | None = None,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        # Only the positional parts go to ``args``; the others live in ``__dict__``, so that copying
        # an error (concurrent.futures does) calls this constructor with what it requires.
        super().__init__(operation, problem)
        self.operation = operation
        self.problem = problem
        self.got = got
        self.expected = expected
        self.because = because
        self.hint = hint
        self.excerpt = excerpt

    def parts(self) -> Iterator[tuple[str, object]]:
        """Yield ``(label, value)`` for each line below the first, in printing order."""
        yield "got", self.got
        yield "expected", self.expected
        yield "because", self.because
        yield "hint", self.hint
        yield "excerpt", self.excerpt

    def __str__(self) -> str:
        lines = [f"{self.operation}: {self.problem}" if self.problem else self.operation]
        lines += [_line(label, value) for label, value in self.parts() if value is not None]
        # Errors quote names from files, models and devices, which may contain control characters.
        return escaped("\n".join(lines), keep="\n\t")


def _line(label: str, value: object) -> str:
    continuation = "\n" + " " * (_LABEL_COLUMNS + 2)
    return f"  {label:<{_LABEL_COLUMNS}}{str(value).replace(chr(10), continuation)}"


class UserError(DLCompilerError):
    """A mistake of the caller; the text says what is wrong and how to correct it."""


class ExpressionError(UserError):
    """A tensor expression, a dtype or a text of notation is not valid."""

    place: tuple[int, int] | None = None
    """Line and column, both from 1, of the place in a text; None for other errors."""


class ScheduleError(UserError):
    """A schedule primitive was refused, or a schedule cannot be lowered."""


class TargetError(UserError):
    """An unknown target, or one that cannot do what was asked."""


class TuningError(UserError):
    """A tuning run, a space or a record cannot be used as asked."""


class GraphError(UserError):
    """A graph is not well formed, its types do not fit, or a decision cannot be forced.

    `place` says where a text is wrong; it is None for other errors.
    """

    place: tuple[int, int] | None = None
    """Line and column, both from 1, of the place in a text."""


class DeviceUnavailable(UserError):  # noqa: N818 - a state of the machine, not a mistake
    """The device is not present, or not usable on this machine or in this process."""


class DeviceFault(UserError):  # noqa: N818 - a state of the machine, not a mistake
    """A device or its driver failed while a program ran: an illegal address, a reset, a loss.

    The process may be unable to use the device again; a worker process ends after reporting it.
    """


class CallError(UserError, ValueError):
    """The arguments of a call do not fit; raised before any machine code runs.

    It is also a ``ValueError``, which NumPy raises for a wrong array and callers may catch.
    """


class OutOfMemory(UserError, MemoryError):  # noqa: N818 - a state of the machine, not a mistake
    """There is no memory for a kernel's temporaries; the contents of the outputs are undefined.

    It is also a ``MemoryError``, which NumPy raises if there is none for an array.
    """

    PROBLEM = "not enough memory for temporaries"
    """First words of the problem in the text."""


class MeasurementError(UserError):
    """A measurement gave no number: the worker crashed, hung, or sent an invalid answer."""


class VerificationError(UserError):
    """A computed result differs from its oracle by more than the bound.

    Parameters
    ----------
    operation, problem, got, expected, because, hint, excerpt
        As in `DLCompilerError`; ``got`` and ``expected`` are the two values at ``index``.
    oracle : str, optional
        Name of the oracle that ran, for example ``"numpy"``.
    shape : tuple of int, optional
        Shape on which it ran, possibly a smaller one than the user's.
    seed : int, optional
        Seed of the inputs.
    index : tuple of int, optional
        The first wrong element.
    bound : float, optional
        Largest difference allowed at ``index``; 0 if equality is required.
    """

    def __init__(
        self,
        operation: str,
        problem: str,
        *,
        oracle: str | None = None,
        shape: tuple[int, ...] | None = None,
        seed: int | None = None,
        index: tuple[int, ...] | None = None,
        got: object = None,
        expected: object = None,
        bound: float | None = None,
        because: str | None = None,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(
            operation,
            problem,
            got=got,
            expected=expected,
            because=because,
            hint=hint,
            excerpt=excerpt,
        )
        self.oracle = oracle
        self.shape = shape
        self.seed = seed
        self.index = index
        self.bound = bound

    def parts(self) -> Iterator[tuple[str, object]]:
        """Yield the place and the bound around the parts of every error."""
        yield "index", self.index
        yield "got", self.got
        yield "expected", self.expected
        yield "bound", self.bound
        yield "oracle", self.oracle
        yield "shape", self.shape
        yield "seed", self.seed
        yield "because", self.because
        yield "hint", self.hint
        yield "excerpt", self.excerpt


class ProgramError(UserError):
    """A forbidden action of a running program, found by an oracle or by the program's own checks.

    Parameters
    ----------
    operation, problem, got, expected, because, hint, excerpt
        As in `DLCompilerError`; ``excerpt`` is the statement.
    kind : {"out_of_bounds", "uninitialised", "race", "step_budget", "assertion",
           "extern"}
        The action: an index outside a buffer or a tensor; a read of an unwritten element; two
        iterations of a parallel or vectorized loop that depend on their order; more steps than the
        limit; an assertion that does not hold; a call of code from outside that the oracle cannot
        run.
    buffer : str, optional
        Name of the buffer or tensor.
    index : tuple of int, optional
        The element.
    loops : tuple of (str, int)
        The loops around the statement, outermost first, each with its value.
    """

    def __init__(
        self,
        operation: str,
        problem: str,
        *,
        kind: str = "",
        buffer: str | None = None,
        index: tuple[int, ...] | None = None,
        loops: tuple[tuple[str, int], ...] = (),
        got: object = None,
        expected: object = None,
        because: str | None = None,
        hint: str | None = None,
        excerpt: str | None = None,
    ) -> None:
        super().__init__(
            operation,
            problem,
            got=got,
            expected=expected,
            because=because,
            hint=hint,
            excerpt=excerpt,
        )
        self.kind = kind
        self.buffer = buffer
        self.index = index
        self.loops = loops

    def parts(self) -> Iterator[tuple[str, object]]:
        """Yield the common parts, with the loops before the reason."""
        yield "got", self.got
        yield "expected", self.expected
        yield "loops", ", ".join(f"{name}={value}" for name, value in self.loops) or None
        yield "because", self.because
        yield "hint", self.hint
        yield "excerpt", self.excerpt


class InternalError(DLCompilerError):
    """A bug of this project, not a mistake of the caller.

    Parameters
    ----------
    operation, problem, got, expected, because, hint, excerpt
        As in `DLCompilerError`.
    replay : str, optional
        One line of Python that reproduces the program state.
    """

    def __init__(
        self,
        operation: str,
        problem: str,
        *,
        got: object = None,
        expected: object = None,
        because: str | None = None,
        hint: str | None = "this is a bug in dlcompiler: please report it with this text",
        excerpt: str | None = None,
        replay: str | None = None,
    ) -> None:
        super().__init__(
            operation,
            problem,
            got=got,
            expected=expected,
            because=because,
            hint=hint,
            excerpt=excerpt,
        )
        self.replay = replay

    def parts(self) -> Iterator[tuple[str, object]]:
        """Yield the common parts, then the replay line."""
        yield from super().parts()
        yield "replay", self.replay
