"""Descriptions of accelerators that are refused: each message names the part."""

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

GEMM = te.tensor_intrin("vta_gemm_1x16x16")
INP, WGT = Memory("inp", (16,), "int8", 8), Memory("wgt", (16, 16), "int8", 8)
ACC = Memory("acc", (16,), "int32", 8)


def described(**changes):
    parts = {
        "memories": [INP, WGT, ACC],
        "engines": [Engine("move"), Engine("math")],
        "instructions": [
            copy("move", into="inp"), copy("move", into="wgt"), copy("move", out_of="acc"),
            tensor_op("math", GEMM, cycles=lambda n: n),
        ],
    }  # fmt: skip
    return Accelerator("own", **{**parts, **changes})


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
        ({"word_bits": 12}, "its words are no whole bytes"),
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
