"""What goes wrong in models is an error with its reason, and leaves the model usable."""

import gc
import threading
import weakref

import numpy as np
import pytest

from dlcompiler.errors import CallError, GraphError, OutOfMemory, ProgramError
from dlcompiler.graph import ANY, build, op, var
from dlcompiler.graph.execution.entry import load_entry
from dlcompiler.graph.execution.stepping import KernelCode
from dlcompiler.graph.execution.steps import steps_of
from dlcompiler.graph.ir import Call, Function, If, Module, TensorType, Var
from dlcompiler.runtime.function import Function as Executable
from dlcompiler.runtime.options import Options
from dlcompiler.target import resolve
from tests.graph.execution.executed_graphs import CONTEXTS


def rows():
    """Return a model of two kernels."""
    x = var("x", (4, 16))
    return build(Module.from_expr(op.nn.softmax(op.nn.softmax(x))))


@pytest.mark.parametrize(
    ("args", "named", "problem"),
    [
        ((), {}, "an argument is missing"),
        ((1, 2), {}, "not those of the model"),
        ((np.zeros((4, 16), "f"),), {"x": 1}, "not those of the model"),
        ((), {"y": np.zeros((4, 16), "f")}, "not those of the model"),
        ((np.zeros((16, 4), "f"),), {}, "wrong shape"),
        ((np.zeros((4, 16)),), {}, "wrong dtype"),
        ((["a"],), {}, "does not fit"),
        ((None,), {}, "not an array"),
    ],
)
def test_arguments_that_do_not_fit(args, named, problem):
    with pytest.raises(CallError, match=problem):
        rows()(*args, **named)


def test_results_may_not_lie_in_inputs():
    x = np.zeros((4, 16), "f")
    with pytest.raises(CallError, match="overlap"):
        rows().run(x, x)


def test_a_kernel_that_fails_ends_the_run_with_its_message():
    x = var("x", (4,))
    module = Module.from_expr(op.nn.softmax(op.nn.softmax(x)))
    steps = steps_of(module)
    kernel = Executable(
        failing_kernel(1, 41), "kernel", steps.params, messages=("index {0} is outside",)
    )
    code = Options.for_target(resolve("cpu"))
    model = load_entry(steps, [KernelCode(kernel, ())] * len(steps.kernels), code)
    assert set(model.messages[1:]) == {"index {0} is outside"}
    with pytest.raises(ProgramError, match="index 41 is outside"):
        model(np.zeros(4, "f"), np.zeros(4, "f"))


def failing_kernel(number, value):
    """Return code that reports a failure."""
    from dlcompiler.runtime.llvm import compile_ir

    text = f"""
define void @kernel(ptr %a, ptr %b, ptr %status) {{
  store i64 {number}, ptr %status
  %at = getelementptr i64, ptr %status, i64 1
  store i64 {value}, ptr %at
  ret void
}}
"""
    return compile_ir(text, Options.for_target(resolve("cpu")))


def test_without_memory_for_the_arena():
    x = var("x", (1,))
    large = op.broadcast_to(x, shape=(1 << 40,))
    model = build(Module.from_expr(op.sum(large)), context=CONTEXTS["unfused"])
    assert len(model.steps) == 2
    with pytest.raises(OutOfMemory, match="the arena of the model"):
        model(np.zeros(1, "f"))


def test_several_threads_call_one_model():
    model = rows()
    inputs = [np.random.default_rng(n).uniform(-1, 1, (4, 16)).astype("f") for n in range(4)]
    expected = [model(x) for x in inputs]
    wrong = []

    def work(n):
        wrong.extend(n for _ in range(200) if not np.array_equal(model(inputs[n]), expected[n]))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_model_that_is_dropped_while_it_runs():
    model, out = rows(), np.empty((4, 16), "f")
    x = np.ones((4, 16), "f")
    begun = threading.Event()

    def work(called):
        begun.set()
        for _ in range(2000):
            called.run(x, out)

    thread = threading.Thread(target=work, args=(model,))
    thread.start()
    begun.wait()
    gone = weakref.ref(model)
    del model
    gc.collect()
    thread.join()
    np.testing.assert_allclose(out, 1 / 16)
    del thread
    gc.collect()
    assert gone() is None


def test_branches_and_unknown_extents_are_refused():
    x = var("x", (4,))
    condition = Var("c", TensorType((), "bool"))
    branch = Module.from_expr(Function((x, condition), If(condition, x, op.negative(x))))
    with pytest.raises(GraphError, match="If"):
        build(branch)
    unknown = Var("u", TensorType((ANY, 3)))
    with pytest.raises(GraphError, match="known only in a run"):
        build(Module.from_expr(op.nn.relu(unknown)))
    inner = Function((x,), op.nn.relu(x))
    y = var("y", (4,))
    with pytest.raises(GraphError, match="no kernel"):
        build(Module.from_expr(Function((y,), Call(inner, (y,)))))
