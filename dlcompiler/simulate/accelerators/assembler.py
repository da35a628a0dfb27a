"""Text to instructions, the inverse of `listing.disassemble`."""

from __future__ import annotations

import re

from dlcompiler.simulate.accelerators.errors import InstructionError
from dlcompiler.simulate.accelerators.program import Step
from dlcompiler.target.accelerators import Accelerator, Field, Instruction
from dlcompiler.target.accelerators.encodings import operand_fields

_FIELD = re.compile(r"([A-Za-z_]\w*)=(-?(?:0x[0-9A-Fa-f]{1,16}|[0-9]{1,20}))")


def assemble(accelerator: Accelerator, text: str) -> tuple[Step, ...]:
    """Return the instructions of a text.

    A line is the name of an instruction, ``field=value`` for each field that is not 0, ``pop
    QUEUE`` and ``push QUEUE``. ``#`` begins a comment.

    Parameters
    ----------
    accelerator : Accelerator
        The machine of the instructions.
    text : str
        The lines.

    Raises
    ------
    InstructionError
        A line has no instruction, an unknown field or queue, a field twice, or a value that does
        not fit its field.

    Examples
    --------
    >>> from dlcompiler.target.accelerators.vta import preset
    >>> step, = assemble(preset("vta-pynq"), "load inp y_size=1 x_size=4 push load->compute")
    >>> step.pushes
    ('load->compute',)
    """
    steps = []
    for number, line in enumerate(text.splitlines(), 1):
        content = line.partition("#")[0].strip()
        if content:
            steps.append(_step(accelerator, content, number))
    return tuple(steps)


def _step(accelerator: Accelerator, content: str, number: int) -> Step:
    instruction, words = _instruction(accelerator, content, number)
    names = operand_fields(accelerator, instruction)
    values = dict.fromkeys(names, 0)
    given: set[str] = set()
    tokens: dict[str, list[str]] = {"pop": [], "push": []}
    rest = iter(words)
    for word in rest:
        if word in tokens:
            tokens[word].append(_queue(accelerator, instruction, word, next(rest, ""), number))
            continue
        match = _FIELD.fullmatch(word)
        if match is None or match[1] not in values:
            raise _error(
                number, "this is no field of the instruction", word,
                f"one of {', '.join(names)}, pop or push",
            )  # fmt: skip
        if match[1] in given:
            raise _error(number, "the field is there twice", word, f"{match[1]}= once")
        given.add(match[1])
        values[match[1]] = fitting(instruction, match[1], int(match[2], 0), f"line {number}")
    return Step(instruction, tuple(values.values()), tuple(tokens["pop"]), tuple(tokens["push"]))


def _instruction(
    accelerator: Accelerator, content: str, number: int
) -> tuple[Instruction, list[str]]:
    """Return the instruction of a line, and the words after its name."""
    by_length = sorted(accelerator.instructions, key=lambda each: -len(each.name))
    for each in by_length:
        if content == each.name or content.startswith(f"{each.name} "):
            return each, content[len(each.name) :].split()
    names = ", ".join(each.name for each in accelerator.instructions)
    raise _error(number, "the line begins with no instruction", content[:40], names)


def _queue(
    accelerator: Accelerator, instruction: Instruction, verb: str, name: str, number: int
) -> str:
    assert accelerator.queues is not None
    end = "sink" if verb == "pop" else "source"
    known = [q.name for q in accelerator.queues if getattr(q, end) == instruction.engine]
    if name not in known:
        raise _error(
            number, f"{instruction.engine} cannot {verb} such a token", name or "nothing",
            ", ".join(known) or "no queue",
        )  # fmt: skip
    return name


def fitting(instruction: Instruction, name: str, value: int, where: str) -> int:
    """Return a value if it fits the field of its name.

    Raises
    ------
    InstructionError
        It does not; the message names the field.
    """
    field: Field | None = instruction.field(name)
    if field is not None and not field.least <= value <= field.most:
        raise InstructionError(
            f"{instruction.name}, {where}", f"the value of {name} does not fit its field",
            kind="encoding", got=str(value), expected=f"{field.least} to {field.most}",
        )  # fmt: skip
    return value


def _error(number: int, problem: str, got: str, expected: str) -> InstructionError:
    return InstructionError(
        f"assemble line {number}", problem, kind="encoding", got=got, expected=expected
    )
