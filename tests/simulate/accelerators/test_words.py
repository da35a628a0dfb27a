"""Instructions as words and as text."""

import random

import pytest

from dlcompiler.simulate.accelerators import (
    InstructionError,
    InstructionProgram,
    Step,
    assemble,
    disassemble,
    encoding_2019,
    encoding_of,
)
from dlcompiler.target.accelerators.encodings import operand_fields
from tests.share import share_of


def drawn(accelerator, encoding, chooser):
    """Return a random instruction whose values fit an encoding."""
    instruction = chooser.choice(accelerator.instructions)
    fields = {field.name: field for field in encoding.fields[instruction.name]}
    factors = encoding.factors.get(instruction.name, {})
    values = []
    for name in operand_fields(accelerator, instruction):
        field, factor = fields[name], factors.get(name, 1)
        low, high = -(-field.least // factor), field.most // factor
        values.append(chooser.choice([low, high, chooser.randint(low, high)]))
    pops = [q.name for q in accelerator.queues if q.sink == instruction.engine]
    pushes = [q.name for q in accelerator.queues if q.source == instruction.engine]
    return Step(
        instruction, tuple(values),
        tuple(name for name in pops if chooser.random() < 0.5),
        tuple(name for name in pushes if chooser.random() < 0.5),
    )  # fmt: skip


@pytest.mark.parametrize("encode", [encoding_of, encoding_2019])
def test_words_and_texts_give_the_instructions_back(machine, encode):
    accelerator = machine()
    encoding = encode(accelerator)
    chooser = random.Random(7)
    steps = tuple(drawn(accelerator, encoding, chooser) for _ in range(share_of(3000, 300)))
    data = encoding.encode_all(steps)
    assert encoding.decode_all(data) == steps
    text = disassemble(InstructionProgram(accelerator, steps))
    assert assemble(accelerator, text) == steps
    assert encoding.encode_all(assemble(accelerator, text)) == data


def test_the_words_of_measured_programs(measured):
    for record, each in measured("B"):
        words = encoding_of(each.program.accelerator).encode_all(each.program.steps)
        assert words.hex() == "".join(record["instructions"])


def test_a_word_of_2019(machine):
    step = assemble(machine(), "load acc sram_base=3 dram_base=256 y_size=2 x_size=5 x_stride=7")[0]
    word = encoding_2019(machine()).encode(step)
    assert word & 0x1FF == 3 << 7  # two bits of the memory, after the opcode and four tokens
    assert word >> 9 & 0xFFFF == 3
    assert word >> 25 & 0xFFFFFFFF == 256 * 64  # in bytes
    assert word >> 96 & 0xFFFF == 7 * 4  # that RTL counts 16 bytes for an accumulator of 64


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        (7, "no instruction has this code"),
        (5 << 7, "no instruction has this code"),  # a load of a memory that does not exist
        (3 | 1 << 80, "bits that belong to no field are set"),
    ],
)
def test_damaged_words(machine, word, problem):
    with pytest.raises(InstructionError, match=problem) as caught:
        encoding_of(machine()).decode(word)
    assert caught.value.kind == "encoding"


def test_words_of_2019_that_no_program_has(machine):
    encoding = encoding_2019(machine())
    word = encoding.encode(assemble(machine(), "load wgt dram_base=1 y_size=1 x_size=1")[0])
    with pytest.raises(InstructionError, match="dram_base is no multiple of 256"):
        encoding.decode(word + (1 << 25))


def test_the_last_word_is_cut_off(machine):
    with pytest.raises(InstructionError, match="the last instruction is cut off"):
        encoding_of(machine()).decode_all(bytes(17))


def test_a_value_that_does_not_fit_is_named(machine):
    step = assemble(machine(), "alu iter_out=1")[0]
    names = operand_fields(machine(), step.instruction)
    for name, value in (("imm", 1 << 15), ("iter_in", 1 << 14), ("uop_bgn", -1)):
        values = [value if each == name else 0 for each in names]
        with pytest.raises(InstructionError, match=f"the value of {name} does not fit"):
            encoding_of(machine()).encode(step._replace(values=tuple(values)))
    with pytest.raises(InstructionError, match="compute cannot pop such a token"):
        encoding_of(machine()).encode(step._replace(pops=("compute->store",)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("jump 3", "the line begins with no instruction"),
        ("gemm speed=3", "this is no field of the instruction"),
        ("gemm iter_out=99999", "the value of iter_out does not fit its field"),
        ("gemm iter_out=ten", "this is no field of the instruction"),
        ("gemm iter_out=1 iter_out=2", "the field is there twice"),
        ("gemm pop compute->store", "compute cannot pop such a token"),
        ("gemm pop", "compute cannot pop such a token"),
    ],
)
def test_texts_that_are_refused(machine, text, problem):
    with pytest.raises(InstructionError, match=problem) as caught:
        assemble(machine(), f"finish\n{text}")
    assert "line 2" in str(caught.value)


def test_comments_and_empty_lines(machine):
    assert len(assemble(machine(), "# a program\n\nfinish  # the end\n")) == 1
