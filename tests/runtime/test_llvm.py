"""LLVM IR text to machine code, and what is refused before LLVM sees it."""

import ctypes
import dataclasses
import gc
import weakref

import numpy as np
import pytest

from dlcompiler.errors import InternalError, TargetError
from dlcompiler.runtime import externs
from dlcompiler.runtime.llvm import Options, assembly, compile_ir, optimize, version
from dlcompiler.target import resolve
from dlcompiler.target.detect import host

ANSWER = "define i32 @answer() {\n  %x = add i32 40, 2\n  ret i32 %x\n}\n"


def call(module, symbol, restype=ctypes.c_int32):
    return ctypes.CFUNCTYPE(restype)(module.address(symbol))()


def test_text_becomes_code_that_runs(options):
    module = compile_ir(ANSWER, options)
    assert call(module, "answer") == 42
    assert module.symbols == ("answer",)
    assert repr(module) == "LoadedModule(answer)"


def test_the_stages_are_there_as_text(options):
    module = compile_ir(ANSWER, options)
    assert module.text == ANSWER
    assert "ret i32 42" in module.optimized_ir
    assert "answer:" in module.assembly
    assert module.optimized_ir == optimize(ANSWER, options)
    assert module.assembly == assembly(ANSWER, options)


def test_a_missing_symbol_is_an_error_not_a_null_pointer(options):
    module = compile_ir(ANSWER, options)
    with pytest.raises(InternalError) as caught:
        module.address("question")
    assert "look up question: the module does not define this function" in str(caught.value)
    assert "  expected  answer" in str(caught.value)


def test_an_internal_function_is_not_a_symbol(options):
    text = "define internal void @hidden() {\n  ret void\n}\n"
    assert compile_ir(ANSWER + text, options).symbols == ("answer",)


def test_functions_of_the_c_library_are_found(options):
    text = """
    declare double @tanh(double)
    declare double @llvm.exp.f64(double)
    define double @f() {
      %x = call double @tanh(double 0.5)
      %y = call double @llvm.exp.f64(double %x)
      ret double %y
    }
    """
    module = compile_ir(text, dataclasses.replace(options, opt_level=0))
    assert call(module, "f", ctypes.c_double) == pytest.approx(np.exp(np.tanh(0.5)), rel=1e-15)
    assert module.imports == {"tanh"}


@pytest.mark.parametrize("name", sorted(externs.C_FUNCTIONS))
def test_every_listed_function_is_there(name):
    assert externs.resolve([name])[name]


@pytest.mark.parametrize("name", ["nonsense", "system", "llvm.nonsense.f32"])
def test_an_unknown_external_is_refused_before_linking(name, options):
    text = f"declare void @{name}()\ndefine void @f() {{\n  call void @{name}()\n  ret void\n}}"
    for attempt in (compile_ir, optimize):
        with pytest.raises(InternalError) as caught:
            attempt(text, options)
        text_of_error = str(caught.value)
        assert "link machine code: the code calls functions that nothing defines" in text_of_error
        assert f"  got       {name}\n" in text_of_error


def test_invalid_text_is_refused_with_the_lines_around(options):
    with pytest.raises(InternalError) as caught:
        compile_ir("define void @f() {\n  %x = add i32 1, %y\n  ret void\n}", options)
    assert "read LLVM IR: the text is not valid" in str(caught.value)
    assert "  excerpt   define void @f() {" in str(caught.value)
    assert "use of undefined value '%y'" in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "@x = constant i32 0",
        "define void @f() {\n  store i32 0, ptr null\n  ret void\n}",
    ],
)
def test_a_module_without_code_is_refused(text, options):
    """LLVM's linker would abort the process."""
    with pytest.raises(InternalError, match="link machine code: the code is empty"):
        compile_ir(text, options)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"triple": "aarch64-unknown-linux-gnu"}, "code for another family of processors"),
        ({"cpu": "pentium-pro-max"}, "not a processor that this package compiles for"),
        ({"features": ("+avx1024",)}, "not a feature of this family of processors"),
        ({"features": ("avx2",)}, "not a feature of this family of processors"),
    ],
)
@pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="names of x86-64")
def test_options_on_which_llvm_ends_the_process_are_refused(change, problem, options):
    with pytest.raises(TargetError, match=problem):
        compile_ir(ANSWER, dataclasses.replace(options, **change))


@pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="names of x86-64")
def test_code_that_this_machine_cannot_run_is_refused(options):
    lacking = next(f[1:] for f in host().features if f.startswith("-amx"))
    with pytest.raises(TargetError) as caught:
        compile_ir(ANSWER, dataclasses.replace(options, features=(f"+{lacking}",)))
    assert f"  got       code that uses {lacking}" in str(caught.value)
    assert "  hint      build for target='cpu'" in str(caught.value)


@pytest.mark.skipif(not host().triple.startswith("x86_64"), reason="a preset of x86-64")
def test_code_for_a_preset_runs_where_the_machine_has_its_features():
    assert call(compile_ir(ANSWER, Options.for_target(resolve("x86-64-sse2"))), "answer") == 42


def test_options_decide_what_llvm_does_on_its_own(options):
    loop = """
    define void @f(ptr noalias %a, ptr noalias %b) {
    entry:
      br label %body
    body:
      %i = phi i64 [0, %entry], [%next, %body]
      %pa = getelementptr float, ptr %a, i64 %i
      %pb = getelementptr float, ptr %b, i64 %i
      %x = load float, ptr %pa
      %y = fadd float %x, 1.0
      store float %y, ptr %pb
      %next = add i64 %i, 1
      %more = icmp ult i64 %next, 1024
      br i1 %more, label %body, label %done
    done:
      ret void
    }
    """
    assert "x float>" not in optimize(loop, options)
    assert "x float>" in optimize(loop, dataclasses.replace(options, loop_vectorize=True))
    assert optimize(loop, options).count("fadd") == 1
    assert optimize(loop, dataclasses.replace(options, unroll=True)).count("fadd") > 1


def test_a_module_is_unloaded_with_its_last_reference(options):
    module = compile_ir(ANSWER, options)
    gone = weakref.ref(module)
    del module
    gc.collect()
    assert gone() is None


def test_many_modules_leave_nothing_behind(options):
    def mapped():
        with open("/proc/self/maps") as maps:
            return sum(1 for _ in maps)

    compile_ir(ANSWER, options)
    before = mapped()
    for _ in range(50):
        compile_ir(ANSWER, options)
    assert mapped() - before < 20


def test_the_version_of_llvm():
    assert version().split(".")[0].isdigit()
