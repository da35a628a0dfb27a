"""Programs in files."""

import hashlib
from dataclasses import replace

import numpy as np
import pytest

from dlcompiler.errors import UserError
from dlcompiler.simulate.accelerators import (
    DramBuffer,
    InstructionProgram,
    assemble,
    load_program,
    time_program,
)
from dlcompiler.target.accelerators import Accelerator, Engine, Memory, copy


def test_a_program_comes_back(measured, tmp_path):
    path = tmp_path / "program"
    for profile in "AB":
        for record, each in measured(profile)[::12]:
            each.program.save(path)
            found = load_program(path)
            assert found.steps[0].instruction.name == each.program.steps[0].instruction.name
            assert [s[1:] for s in found.steps] == [s[1:] for s in each.program.steps]
            assert time_program(found).cycles == time_program(each.program).cycles, record["id"]


def test_buffers_and_micro_ops_come_back(program, tmp_path):
    given = program("finish", micro_ops=[[2047, 3, 1023], [0, 2047, 1]])
    buffers = (DramBuffer("A", 0, (4, 16), "int8"), DramBuffer("C", 64, (4,), "int32", "output"))
    whole = InstructionProgram(
        given.accelerator, given.steps, buffers, given.micro_ops, 4096, 8192, 1 << 20
    )
    whole.save(tmp_path / "program")
    found = load_program(tmp_path / "program", given.accelerator)
    assert found.buffers == buffers
    assert (found.micro_ops == given.micro_ops).all()
    assert found.accelerator is given.accelerator
    assert (found.micro_op_address, found.instruction_address, found.dram_bytes) == (
        4096, 8192, 1 << 20,
    )  # fmt: skip


def test_another_machine_is_refused(program, machine, tmp_path):
    program("finish").save(tmp_path / "program")
    with pytest.raises(UserError, match="it is for another machine"):
        load_program(tmp_path / "program", machine(LOG_WGT_BUFF_SIZE=15))


def test_a_machine_of_ones_own_must_be_given(tmp_path):
    own = Accelerator(
        "toy-saved", [Memory("tile", (4,), "int32", 8)], [Engine("load")],
        [copy("load", into="tile")],
    )  # fmt: skip
    program = InstructionProgram(own, assemble(own, "load tile y_size=1 x_size=8"))
    program.save(tmp_path / "program")
    with pytest.raises(UserError, match="its machine is no VTA"):
        load_program(tmp_path / "program")
    assert load_program(tmp_path / "program", own).steps == program.steps


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda data: b"", "it is no program"),
        (lambda data: data[:-1], "its digest differs"),
        (lambda data: data.replace(b"finish", b"finisH"), "its digest differs"),
        (lambda data: signed(data, b'"count": 1', b'"count": 2'), "as many bytes as it says"),
        (lambda data: signed(data, b'"count": 1', b'"count": "x"'), "count is no size"),
        (lambda data: signed(data, b'"LOG_BATCH"', b'"LOG_BATHC"'), "parameters of its VTA"),
        (lambda data: signed(data, b'"depth": 8192', b'"depth": 8191'), "another machine"),
        (lambda data: signed(data, b'{"machine"', b'{{"machine"'), "no JSON|size of its"),
    ],
)
def test_damaged_files(program, tmp_path, change, problem):
    path = tmp_path / "program"
    program("finish", micro_ops=np.zeros((0, 3))).save(path)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(UserError, match=problem):
        load_program(path)


def signed(data, old, new):
    """Change the description of a file, and correct its size and its digest."""
    head, length, rest = data.split(b"\n", 2)
    text, words = rest[: int(length)].replace(old, new, 1), rest[int(length) :]
    body = b"%d\n%b%b" % (len(text), text, words)
    return head[:-64] + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        (b'"dram_bytes": 1048576', b'"dram_bytes": 4159', "micro-ops do not lie in DRAM"),
        (b'"dram_bytes": 1048576', b'"dram_bytes": 63', "buffer A does not lie in"),
        (
            b'"address": 0, "shape"',
            b'"address": 1048560, "shape"',
            "the buffer A does not lie in DRAM",
        ),
        (b'"shape": [4]', b'"shape": [4294967295, 4294967295, 1]', "buffer C does not lie in"),
        (b'"dram_bytes": 1048576', b'"dram_bytes": 1099511627776', "dram_bytes is no size"),
    ],
)
def test_places_outside_dram(program, tmp_path, old, new, problem):
    given = program("finish", micro_ops=np.zeros((16, 3), np.int64))
    buffers = (DramBuffer("A", 0, (4, 16), "int8"), DramBuffer("C", 64, (4,), "int32", "output"))
    whole = replace(given, buffers=buffers, micro_op_address=4096, dram_bytes=1 << 20)
    whole.save(path := tmp_path / "program")
    path.write_bytes(signed(path.read_bytes(), old, new))
    with pytest.raises(UserError, match=problem):
        load_program(path)


def test_no_such_file(tmp_path):
    with pytest.raises(UserError, match="cannot be read"):
        load_program(tmp_path / "nothing")
