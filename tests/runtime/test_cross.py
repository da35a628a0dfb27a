"""Code for other machines, made in a child process: where LLVM ends it, that is an error."""

import dataclasses

import pytest

from dlcompiler.errors import InternalError, TargetError
from dlcompiler.runtime.cross import compile_elsewhere
from dlcompiler.runtime.llvm import Options
from dlcompiler.runtime.object_files import ObjectFacts, read_facts
from dlcompiler.target import resolve

NOTHING = "define void @f(ptr %p) {\n  ret void\n}\n"
AARCH64 = Options.for_target(resolve("aarch64"))


def refusal(text, options):
    with pytest.raises(TargetError) as caught:
        compile_elsewhere(text, options, "f")
    return str(caught.value)


@pytest.mark.parametrize(
    ("change", "got"),
    [
        ({"cpu": "nonsense"}, "'nonsense' is not a recognized processor for this target"),
        ({"features": ("+nonsense",)}, "'+nonsense' is not a recognized feature for this target"),
        ({"triple": "klingon-unknown-linux"}, "unknown to LLVM"),
        ({"triple": "nvptx64-nvidia-cuda", "cpu": "sm_70", "features": ()}, "can't emit a file"),
    ],
)
def test_a_machine_that_llvm_does_not_know_is_refused(change, got):
    options = dataclasses.replace(AARCH64, **change)
    for _ in range(2):  # LLVM prints what it does not know once for each machine that it makes
        assert got in refusal(NOTHING, options)


def test_where_llvm_ends_its_process_that_is_an_error_with_what_it_said():
    text = """
    declare <8 x float> @llvm.x86.avx.rcp.ps.256(<8 x float>)
    define void @f(ptr %p) {
      %x = load <8 x float>, ptr %p
      %y = call <8 x float> @llvm.x86.avx.rcp.ps.256(<8 x float> %x)
      store <8 x float> %y, ptr %p
      ret void
    }
    """
    message = refusal(text, AARCH64)
    assert message.startswith(
        "compile f for aarch64-unknown-linux-gnu: LLVM cannot generate the code\n"
        "  got       crashed: ended by SIGABRT\n"
        "  because   LLVM ERROR: "
    )
    assert compile_elsewhere(NOTHING, AARCH64).facts == ObjectFacts("elf", "aarch64", 64, ())


def test_text_that_is_not_valid_is_refused():
    assert "the text is not valid" in refusal(NOTHING.replace("ret", "%q = add i32 %p, 1"), AARCH64)


@pytest.mark.parametrize("name", ["aarch64", "armv7", "riscv64", "wasm32", "x86-64-sse2"])
def test_what_an_object_needs_is_read_from_it(name):
    text = """
    declare float @expf(float)
    declare void @unused()
    define void @f(ptr %p) {
      %x = load float, ptr %p
      %y = call float @expf(float %x)
      %z = frem float %y, %x
      store float %z, ptr %p
      ret void
    }
    """
    made = compile_elsewhere(text, Options.for_target(resolve(name)))
    assert made.facts.needs == ("expf", "fmodf")
    assert "expf" in made.assembly
    assert "define void @f" in made.llvm_ir


def test_other_formats_and_damage():
    assert read_facts(b"\xcf\xfa\xed\xfe") is None
    with pytest.raises(InternalError, match="it is damaged"):
        read_facts(b"\x7fELF\x02\x01\x01")
