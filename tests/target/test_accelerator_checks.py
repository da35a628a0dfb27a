"""Descriptions of accelerators that are refused: each message names the part."""

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.errors import TargetError
from dlcompiler.target import (
    Accelerator,
    Engine,
    Memory,
    MemoryPort,
    TokenQueue,
    copy,
    similar_scopes,
    tensor_op,
)
from dlcompiler.target.accelerators import Field, Instruction
from dlcompiler.target.accelerators.vta import VtaConfig, vta

GEMM = te.tensor_intrin("vta_gemm_1x16x16")
INP, WGT = Memory("inp", (16,), "int8", 8), Memory("wgt", (16, 16), "int8", 8)
ACC, UOP = Memory("acc", (16,), "int32", 8), Memory("uop", (1,), "uint32", 8)
DST_SRC = {"dst": "acc", "src": "acc"}


def described(**changes):
    parts = {
        "memories": [INP, WGT, ACC],
        "engines": [Engine("move"), Engine("math")],
        "instructions": changed(),
    }
    return Accelerator("own", **{**parts, **changes})


def changed(number=0, **changes):
    """Return the instructions of `described` with one changed."""
    found = [
        copy("move", into="inp"), copy("move", into="wgt"), copy("move", out_of="acc"),
        tensor_op("math", GEMM, cycles=lambda n: n),
    ]  # fmt: skip
    found[number] = replace(found[number], **changes)
    return found


def refusal(make):
    with pytest.raises(TargetError) as caught:
        make()
    return str(caught.value)


def test_operands_are_put_into_the_memories_of_their_elements():
    gemm = described().instruction(GEMM.name)
    assert dict(gemm.operands) == {"dst": "acc", "src": "inp", "wgt": "wgt"}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"memories": INP}, "its memories are no sequence of Memory"),
        ({"engines": ["move", "math"]}, "its engines are no sequence of Engine"),
        ({"engines": "move"}, "its engines are no sequence of Engine"),
        ({"instructions": [INP]}, "its instructions are no sequence of Instruction"),
        ({"queues": ["move"]}, "its queues are no sequence of TokenQueue"),
        ({"memories": [Memory("inp", 16, "int8", 8)]}, "the shape of the memory 'inp'"),
        ({"memories": [Memory("inp", (), "int8", 8)]}, "the shape of the memory 'inp'"),
        ({"memories": [Memory("inp", (0,), "int8", 8)]}, "the shape of the memory 'inp'"),
        ({"memories": [Memory("inp", (16,), "int8", 0)]}, "the memory 'inp' has no elements"),
        ({"memories": [Memory("inp", (16,), "int8", 6.5)]}, "the memory 'inp' has no elements"),
        ({"memories": [Memory("inp", (16,), "int7", 8)]}, "'inp' has no known dtype"),
        ({"memories": [Memory("inp", (16,), "int8", 8, "x")]}, "'inp' has no known dtype"),
        ({"memories": [INP, WGT]}, f"dst of {GEMM.name}, acc, is an element of no memory"),
        (
            {"memories": [INP, WGT, ACC, Memory("more", (16,), "int32", 8)]},
            f"dst of {GEMM.name}, acc, can be in 2 memories",
        ),
        ({"engines": [Engine("move", 0)]}, "the queue of the engine 'move' has no place"),
        ({"queues": [TokenQueue("move", "move")]}, "leads from an engine to itself"),
        ({"queues": [TokenQueue("move", "math")] * 2}, "two queues lead from one engine"),
        ({"queues": [TokenQueue("move", "math", depth=0)]}, "move->math has no place for a token"),
        ({"queues": [TokenQueue("move", "maths")]}, "it has no such engine"),
        (
            {
                "engines": [Engine("move"), Engine("math"), Engine("idle")],
                "queues": [TokenQueue("move", "idle")],
            },
            "nobody pops the queue move->idle",
        ),
        ({"instructions": [copy("move", into="inp", cycles=3)]}, "cycles of 'load inp' is no func"),
        ({"port": 8}, "its port is no MemoryPort"),
        ({"port": MemoryPort(0, 16)}, "its memory port has an impossible size"),
        ({"port": MemoryPort(8, -1)}, "its memory port has an impossible size"),
        ({"clock_hz": 0}, "its clock_hz is no frequency"),
        ({"clock_hz": "fast"}, "its clock_hz is no frequency"),
        ({"clock_hz": True}, "its clock_hz is no frequency"),
        ({"port": MemoryPort(8, 1 << 41)}, "its memory port has an impossible size"),
        ({"word_bits": 12}, "its words are no whole bytes"),
        ({"word_bits": 1 << 40}, "its words are no whole bytes"),
        ({"profile": "C"}, "no such profile"),
        ({"memories": [INP, WGT, ACC, Memory("more", (3,), "index", 8)]}, "no known dtype"),
        ({"memories": [INP, WGT, ACC, Memory("more", (3,), "", 8)]}, "no known dtype"),
        ({"memories": [INP, WGT, ACC, Memory("a b", (3,), "int8", 8)]}, "a memory has no name"),
        ({"memories": [INP, WGT, ACC, Memory(3, (3,), "int8", 8)]}, "a memory has no name"),
        ({"engines": [Engine("move"), Engine("math"), Engine("a->b")]}, "an engine has no name"),
        ({"engines": [Engine("move"), Engine("math"), Engine(None)]}, "an engine has no name"),
        ({"engines": [Engine("move"), *(Engine(f"e{n}") for n in range(128))]}, "many engines"),
        ({"instructions": [copy("move", into="inp", name="a\nb")]}, "an instruction has no name"),
        ({"instructions": [copy("move", into="inp", name="x=1")]}, "an instruction has no name"),
        ({"queues": [TokenQueue("move", "math", push=3)]}, "the queue move->math has no fields"),
        (
            {"queues": [TokenQueue("move", "math", push="p"), TokenQueue("math", "move", pop="p")]},
            "two queues of the engine 'move' use one field",
        ),
        ({"instructions": changed(kind="move")}, "'load inp' is of no kind of instruction"),
        ({"instructions": changed(fixed={"opcode": 1})}, "same code"),
        ({"instructions": changed(fixed=[1])}, "fixed of 'load inp' is no mapping"),
        ({"instructions": changed(fixed={"x_size": 1})}, "'load inp' has no field 'x_size'"),
        ({"instructions": changed(fields=(Field("x_size", 8, 0),))}, "has no field 'sram_base'"),
        ({"instructions": changed(fields=(Field("x_size", 0, 0),))}, "x_size' of 'load inp' is no"),
        ({"instructions": changed(fields=(Field("x_size", "8", 0),))}, "'load inp' is no field"),
        ({"instructions": changed(3, spacing=0)}, "impossible spacing"),
        ({"instructions": changed(3, intrinsic="gemm")}, "computes no tensor intrinsic"),
        ({"instructions": changed(3, operands=3)}, "operands of 'vta_gemm_1x16x16' is no mapping"),
        ({"instructions": changed(3, operands={"dst": "acc"})}, "has 1 operands"),
        ({"instructions": changed(3, intrinsic=None)}, "has 0 operands"),
        ({"instructions": changed(3, also_writes={"out": "acc"})}, "has no operand 'out'"),
        ({"instructions": changed(3, micro_ops="inp")}, "are no words of 32 bits"),
        (
            {"memories": [INP, WGT, ACC, UOP], "instructions": changed(3, micro_ops="uop")},
            "nothing loads the micro-ops",
        ),
        (
            {"instructions": [Instruction("alu", "math", "elementwise", operations=("add",))]},
            "has 0 operands",
        ),
        (
            {"instructions": [Instruction("alu", "math", "elementwise", operands=DST_SRC)]},
            "'alu' has no operations",
        ),
    ],
)  # fmt: skip
def test_a_part_that_cannot_be(changes, problem):
    text = refusal(lambda: described(**changes))
    first, *details = text.splitlines()
    assert first.startswith("describe the accelerator 'own': ")
    assert problem in first
    assert any(line.startswith("  got  ") for line in details)


@pytest.mark.parametrize("intrinsic", ["gemm", None, 3])
def test_what_is_no_intrinsic(intrinsic):
    text = refusal(lambda: tensor_op("math", intrinsic, cycles=lambda n: n))
    assert "this is no tensor intrinsic" in text
    assert "te.decl_tensor_intrin(…)" in text


def test_too_few_memories_for_the_operands():
    text = refusal(lambda: tensor_op("math", GEMM, cycles=lambda n: n, memories=("acc",)))
    assert f"{GEMM.name} has 3 operands" in text


def test_other_parts_are_completed_again():
    own = described().with_(memories=[INP, WGT, Memory("acc", (16,), "int32", 1000)])
    assert own.instruction("store acc").field("sram_base").bits == 10
    assert own.with_(clock_hz=2e8).instructions == own.instructions


def test_similar_scopes_are_memories_of_accelerators():
    own = described()
    assert own.scope_of("wgt") in similar_scopes("own.wgts")
    assert all(scope.endswith(".inp") for scope in similar_scopes("inp"))
    assert similar_scopes("vta-pynq.imp")[0] == "vta-pynq.inp"
    assert similar_scopes("sharde") == ()


def test_an_element_that_is_larger_than_its_memory():
    text = refusal(lambda: vta("own", VtaConfig(LOG_BLOCK_IN=15)))
    assert "LOG_WGT_BUFF_SIZE" in text
