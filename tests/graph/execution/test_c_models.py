"""Models in C: one source that compiles by itself, without warnings, and computes the same."""

import ctypes
import subprocess

import numpy as np
import pytest

from dlcompiler.errors import ExpressionError, ProgramError, ScheduleError, UserError
from dlcompiler.graph import build, builders, constant, evaluate, op, var
from dlcompiler.graph.execution.c_entry import MOST_READABLE, elements
from dlcompiler.graph.ir import Function, Module
from dlcompiler.runtime.c_source import c_compiler
from tests.graph.execution.executed_graphs import CONTEXTS, case
from tests.graph.random_graphs import flat
from tests.share import share_of

pytestmark = pytest.mark.skipif(c_compiler() is None, reason="no C compiler")
STRICT = ["-std=c99", "-O1", "-Wall", "-Wextra", "-pedantic", "-Werror", "-fPIC", "-shared"]
CASES = share_of(40, at_least=4)


def compiled(folder, *flags):
    """Compile the one source in a folder strictly, and return the library."""
    (source,) = folder.glob("*.c")
    library = folder / "library.so"
    command = [c_compiler(), *STRICT, *flags, "-o", str(library), str(source), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:2000]
    return ctypes.CDLL(str(library))


def pointers(arrays):
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


@pytest.mark.campaign
def test_the_source_compiles_alone_and_computes_what_the_model_does(tmp_path):
    given = builders.lenet()
    model = build(given.module, "c", params=given.params, name="lenet")
    x = np.random.default_rng(0).standard_normal(model.params[0].static_shape).astype("f")
    assert model.save(tmp_path) == tmp_path / "lenet.c"
    assert (tmp_path / "lenet.h").read_text() == model.header
    assert model.source().startswith(model.header)
    found = np.empty(model.params[1].static_shape, "f")
    assert compiled(tmp_path).lenet(*pointers([x, found])) == 0
    np.testing.assert_array_equal(found, model(x))
    np.testing.assert_allclose(found, evaluate(given.bound, x), rtol=1e-4, atol=1e-5)


def test_the_header_is_one_of_cpp_too(tmp_path):
    model = build(Module.from_expr(op.exp(var("x", (3,)))), "c")
    model.save(tmp_path)
    user = '#include "model.h"\n#include "model.h"\nint main() { return model(0, 0); }\n'
    (tmp_path / "user.cc").write_text(user)
    command = [c_compiler(), "-x", "c++", "-fsyntax-only", "-Wall", str(tmp_path / "user.cc")]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(CASES))
def test_random_models_compute_what_the_graphs_mean(seed):
    module, inputs = case(7 * seed)
    expected = flat(evaluate(module, *inputs))
    model = build(module, "c", context=CONTEXTS["fused" if seed % 3 else "unfused"])
    for found in (model(*inputs), tuple(list_of(model, inputs))):
        for a, b in zip(flat(found), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def list_of(model, inputs):
    run = model.stepped(*inputs)
    for _ in run.steps():
        pass
    return run.outputs


def test_an_index_outside_is_an_error_with_its_values(tmp_path):
    x, i = var("x", (1, 4)), var("i", (1, 2), "int64")
    module = Module.from_expr(op.nn.relu(op.gather(op.nn.softmax(x), i, axis=1)))
    model = build(module, "c", context=CONTEXTS["unfused"])
    a, indices, outside = np.arange(4, dtype="f")[None], np.array([[1, 3]]), np.array([[1, 9]])
    found = model(a, indices)
    np.testing.assert_allclose(found, evaluate(module, a, indices), rtol=1e-6)
    with pytest.raises(ProgramError) as of_c:
        model(a, outside)
    with pytest.raises(ProgramError) as of_llvm:
        build(module, context=CONTEXTS["unfused"])(a, outside)
    assert of_c.value.problem == of_llvm.value.problem
    np.testing.assert_array_equal(model(a, indices), found)


@pytest.mark.campaign
@pytest.mark.parametrize(
    "dtype", ["float16", "float32", "float64", "int8", "uint8", "int64", "uint64", "bool"]
)
def test_weights_of_each_dtype_keep_their_values(dtype, tmp_path):
    numbers = np.random.default_rng(1)
    for size in (0, 1, 7, MOST_READABLE, MOST_READABLE + 1):
        raw = numbers.integers(0, 2**64, size, np.uint64, endpoint=False)
        if dtype == "bool":
            values = raw % 2 == 0
        elif dtype.startswith("float"):
            values = (raw.astype("float64") / 2.0**62 - 1.5).astype(dtype)
            facts = np.finfo(dtype)
            edges = [np.inf, -np.inf, facts.max, facts.smallest_subnormal, -0.0]
            values[: size // 2] = np.array(edges, dtype)[np.arange(size // 2) % 5]
        else:
            values = raw.astype(dtype)
            values[: size // 2] = np.array([np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)[
                np.arange(size // 2) % 2
            ]
        parts = (constant(values), var("x", (1,), dtype))
        module = Module.from_expr(op.concatenate(parts, axis=0))
        model = build(module, "c", opt_level=0)
        one = np.ones(1, dtype)
        found = model(one)
        assert found.tobytes() == np.concatenate([values, one]).tobytes()
        folder = tmp_path / str(size)
        folder.mkdir()
        model.save(folder)
        compiled(folder)


def test_numbers_in_c():
    assert elements(np.array([2**63], "uint64")) == ["UINT64_C(9223372036854775808)"]
    assert elements(np.array(-(2**63))) == ["INT64_MIN"]
    assert elements(np.array([True, False])) == ["1", "0"]
    assert elements(np.array([np.nan], "float64")) == ["NAN"]
    assert elements(np.array([1.0], "float16")) == ["15360"]


def test_names_that_mean_something_in_c(tmp_path):
    names = ["double", "arena", "code", "model", "end", "weight_0", "*/ #include", "report", "x y"]
    total = var(names[0], (3,))
    for name in names[1:]:
        total = op.add(total, var(name, (3,)))
    ones = constant(np.ones(3, "f"))
    made = Module.from_expr(op.nn.softmax(op.multiply(op.nn.softmax(total), ones)))
    model = build(made, "c", context=CONTEXTS["unfused"])
    model.save(tmp_path)
    compiled(tmp_path)
    arrays = [np.full(3, n, "f") for n in range(len(names))]
    np.testing.assert_allclose(model(*arrays), evaluate(made, *arrays), rtol=1e-6)


def test_parameters_with_the_names_of_macros(tmp_path):
    names = ["MODEL_H", "MODEL_NO_MEMORY", "MODEL_ERROR_2", "MODEL_ERROR_3"]
    given = [var(name, (1, 3)) for name in names]
    total = given[0] + given[1] + given[2] + given[3]
    i = var("i", (1, 2), "int64")
    body = op.nn.relu(op.gather(op.nn.softmax(total), i, axis=1))
    made = Module.from_expr(Function((*given, i), body))
    model = build(made, "c", context=CONTEXTS["unfused"])
    model.save(tmp_path)
    compiled(tmp_path)
    arrays = [*(np.full((1, 3), n, "f") for n in range(4)), np.array([[0, 2]])]
    np.testing.assert_allclose(model(*arrays), evaluate(made, *arrays), rtol=1e-6)


@pytest.mark.parametrize("name", ["", "a b", "1a", "x;y", None, "a" * 300])
def test_a_name_that_is_no_identifier(name):
    with pytest.raises((ScheduleError, ExpressionError), match="name"):
        build(Module.from_expr(op.exp(var("x", (3,)))), "c", name=name)


def test_a_folder_that_is_not_there(tmp_path):
    model = build(Module.from_expr(op.exp(var("x", (3,)))), "c")
    assert model.save(tmp_path / "new").read_text() == model.source()
    with pytest.raises(UserError, match="no folder can be made"):
        model.save(tmp_path / "missing" / "new")
