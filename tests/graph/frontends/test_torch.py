"""Models of PyTorch compute the same here, keep their names, or are refused with a reason."""

import importlib
import threading
import warnings

import numpy as np
import pytest

pytest.importorskip("torch", reason="PyTorch is not installed: pip install torch")

import torch
from torch import nn

from dlcompiler import graph
from dlcompiler.errors import GraphError
from dlcompiler.graph.frontends.torch import importer, tracing
from dlcompiler.graph.frontends.torch.package import array_of, type_of
from dlcompiler.graph.ir import post_order
from tests.graph.frontends.torch_models import Block, leaves, models

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")

MODELS = models()
backend_module = importlib.import_module("dlcompiler.graph.frontends.torch.backend")
FIRST = ("indexed", "gru")


def some(names):
    """Return names as parameters; all but the first ones are cases of a campaign."""
    return [n if n in FIRST else pytest.param(n, marks=pytest.mark.campaign) for n in names]


def as_tuple(outputs):
    return outputs if isinstance(outputs, tuple) else (outputs,)


def check(found, expected, bound=2e-5):
    """Check that results are those of PyTorch, of the same dtypes and shapes."""
    for got, want in zip(as_tuple(found), leaves(expected), strict=True):
        want = array_of(want)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        exact = want.dtype.kind in "biu"
        bound = 2e-2 if want.dtype.itemsize == 2 and not exact else bound
        np.testing.assert_allclose(
            got.astype("float64"), want.astype("float64"), rtol=0 if exact else bound,
            atol=0 if exact else bound,
        )  # fmt: skip


@pytest.mark.parametrize("name", some(MODELS))
def test_a_model_computes_the_same(name):
    model, args = MODELS[name]
    module = graph.from_torch(model, args)
    with torch.no_grad():
        expected = model(*args)
    arrays = [array_of(x) for x in args]
    check(graph.evaluate(module, *arrays), expected)
    check(graph.build(module)(*arrays), expected)


def test_calls_have_the_names_of_modules_and_lines_of_code():
    model, args = MODELS["residual"]
    body = graph.from_torch(model, args)["main"].body
    calls = {node.name: node for node in post_order(body) if isinstance(node, graph.Call)}
    assert {"stem", "blocks.0.first", "blocks.1.norm", "blocks.0.add", "head"} <= set(calls)
    span = calls["blocks.0.add"].span
    assert span.file.endswith("torch_models.py")
    assert span.line
    assert span.node == "blocks.0"


def test_an_exported_program_is_read_as_it_is():
    model, args = nn.Linear(3, 2).eval(), (torch.randn(4, 3),)
    program = torch.export.export(model, args)
    check(graph.evaluate(graph.from_torch(program), array_of(args[0])), model(*args))


def test_weights_stay_as_they_were():
    model, args = nn.Linear(3, 2).eval(), (torch.randn(4, 3),)
    module = graph.from_torch(model, args)
    expected = model(*args).clone()
    with torch.no_grad():
        model.weight.zero_()
    check(graph.evaluate(module, array_of(args[0])), expected)


@pytest.mark.parametrize(
    ("model", "args", "problem"),
    [
        (nn.Sequential(nn.Dropout(0.5)), (torch.ones(3),), "as in training"),
        (nn.BatchNorm1d(3), (torch.ones(2, 3),), "writes to a tensor|as in training"),
        (lambda x: x, (), "not a model"),
        (nn.Linear(3, 2).eval(), (torch.ones(2, 4),), "cannot trace"),
        (nn.Linear(3, 2).eval(), (), "cannot trace"),
    ],
)
def test_refusals(model, args, problem):
    with pytest.raises(GraphError, match=problem):
        graph.from_torch(model, args)


class Masked(nn.Module):
    def forward(self, x):
        return x[x > 0]


class Random(nn.Module):
    def forward(self, x):
        return torch.linalg.eigh(x @ x.T)[0]


@pytest.mark.parametrize(
    ("model", "problem"), [(Masked(), "shape"), (Random(), "there is no such operator")]
)
def test_operators_that_are_not_known_are_named(model, problem):
    with pytest.raises(GraphError, match=problem) as error:
        graph.from_torch(model, (torch.randn(3, 3),))
    assert "import a PyTorch model" in str(error.value)


# -- torch.compile ---------------------------------------------------------------------------------


@pytest.fixture
def compiled():
    """Return what compiles a model; nothing of it is kept."""
    torch._dynamo.reset()
    yield lambda model: torch.compile(model, backend="dlcompiler")
    torch._dynamo.reset()


@pytest.mark.parametrize("name", some(["residual", "encoder", "images", "indexed", "bfloat16"]))
def test_compiled_models_compute_the_same(name, compiled):
    model, args = MODELS[name]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # nothing is left to PyTorch
        expected, found = model(*args), compiled(model)(*args)
    check(tuple(array_of(x) for x in leaves(found)), expected)


@pytest.mark.parametrize("through_data", [False, True])
def test_changed_weights_count(through_data, compiled):
    model, x = Block(4).eval(), torch.randn(1, 4, 5, 6)
    with torch.no_grad():
        run = compiled(model)
        run(x)
        weight = model.second.weight
        (weight.data if through_data else weight).mul_(2)
        check(array_of(run(x)), model(x))


def test_two_modules_with_one_code_keep_their_own_weights(compiled):
    first, second, x = nn.Linear(3, 2), nn.Linear(3, 2), torch.randn(4, 3)

    def apply(layer):
        return layer(x).relu()

    run = compiled(apply)
    with torch.no_grad():
        for layer in (first, second, first):
            check(array_of(run(layer)), apply(layer))


def test_writes_and_shared_memory_stay(compiled):
    def write(x):
        x[0] = 3.0
        return x.view(-1), x + 1

    ours, theirs = torch.zeros(2, 3), torch.zeros(2, 3)
    with torch.no_grad():
        view, _ = compiled(write)(ours)
        write(theirs)
    check(array_of(ours), theirs)
    ours[1, 2] = 7.0
    assert view[5] == 7.0


def test_what_is_not_known_here_runs_in_pytorch_with_a_warning(compiled):
    x = torch.randn(4, 4)
    with torch.no_grad(), pytest.warns(RuntimeWarning, match="leaves a part of a model"):
        found = compiled(lambda x: torch.linalg.eigh(x @ x.T)[0] + 1)(x)
    check(array_of(found), torch.linalg.eigh(x @ x.T)[0] + 1)


def test_gradients_are_left_to_pytorch_with_a_warning(compiled):
    model, x = nn.Linear(3, 2), torch.randn(4, 3)
    with pytest.warns(RuntimeWarning, match="gradients"):
        compiled(model)(x).sum().backward()
    assert model.weight.grad is not None


class Counting(nn.Module):
    """Writes to a buffer in each call."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 2.0))
        self.register_buffer("count", torch.zeros(3))

    def forward(self, x):
        self.count.add_(1)
        return x * self.weight + self.count


def test_a_buffer_that_a_model_writes_to_is_an_input(compiled, monkeypatch):
    built = []
    make = backend_module.build
    monkeypatch.setattr(backend_module, "build", lambda *a, **k: built.append(1) or make(*a, **k))
    ours, theirs, x = Counting(), Counting(), torch.ones(3)
    run = compiled(ours)
    with torch.no_grad():
        for _ in range(5):
            check(array_of(run(x)), theirs(x))
    check(array_of(ours.count), theirs.count)
    assert len(built) <= 2


def test_several_shapes(compiled):
    model = nn.Linear(3, 2)
    run = compiled(model)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what PyTorch traces for any size may be left to it
        for n in (2, 5, 7, 1, 5):
            x = torch.randn(n, 3)
            check(array_of(run(x)), model(x))


# -- indices ---------------------------------------------------------------------------------------

ROWS, COLUMNS = torch.tensor([[2, -1, 0]]), torch.tensor([[1], [0]])
ALL = slice(None)


def put(where, value):
    """Return a function that writes to elements of a copy."""

    def function(x):
        y = x.clone()
        y[where] = value
        return y

    return function


def add(where, value):
    """Return a function that adds to elements of a copy, more than once if they are repeated."""
    return lambda x: torch.ops.aten.index_put(x, list(where), torch.as_tensor(value), True)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, ROWS], lambda x: x[:, ROWS, :, COLUMNS], lambda x: x[ROWS, COLUMNS],
        lambda x: x[:, ROWS, COLUMNS], lambda x: x[..., ROWS[0]], lambda x: x[1:, COLUMNS, 1],
        put((ROWS,), 2.0), put((ALL, ROWS), torch.arange(3.0)), put((ALL, ROWS, ALL, COLUMNS), 3.0),
        put((ALL, ROWS, COLUMNS, ALL), torch.arange(6.0).reshape(2, 3, 1)),
        add((None, ROWS, COLUMNS), torch.arange(2.0).reshape(2, 1, 1)),
        add((None, None, ROWS % 2), 1.0), add((None, ROWS % 2, None, COLUMNS), 1.0),
        lambda x: x.index_add(1, ROWS[0] % 3, torch.ones(3, 3, 4, 3)),
        lambda x: x.index_fill(2, ROWS[0], -1.0), lambda x: x.take(ROWS),
    ],
)  # fmt: skip
def test_indices(function):
    x = torch.arange(3 * 3 * 4 * 3.0).reshape(3, 3, 4, 3)
    traced = tracing.traced(function, [x])
    param = graph.var("x", tuple(x.shape))
    result = importer.GraphImporter(traced).run([param])
    module = graph.Module({"main": graph.Function((param,), result)})
    np.testing.assert_array_equal(graph.evaluate(module, x.numpy()), function(x).numpy())


# -- values at the edges ---------------------------------------------------------------------------

NAN, INF = float("nan"), float("inf")
FLOATS = torch.tensor([NAN, INF, -INF, -1.5, -0.0, 0.0, 0.3, 1.5, 7.0])
BYTES = torch.tensor([-7, -1, 0, 1, 7, 3], dtype=torch.int8)


def resized(mode, scale):
    """Return a function that gives a row another size."""
    return lambda x: nn.functional.interpolate(x[None, None], scale_factor=scale, mode=mode)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (torch.sign, FLOATS), (lambda x: x**0.5, FLOATS), (lambda x: x**-0.5, FLOATS),
        (lambda x: x // 0.3, FLOATS), (lambda x: torch.div(1.5, x, rounding_mode="floor"), FLOATS),
        (lambda x: torch.fmax(x, x.flip(0)), FLOATS), (lambda x: torch.fmin(x, x.flip(0)), FLOATS),
        (lambda x: x**3, BYTES), (lambda x: x**x.abs(), BYTES), (lambda x: x << 1, BYTES),
        (lambda x: x >> 1, BYTES), (lambda x: x // 2, BYTES), (lambda x: x % 3, BYTES),
        (lambda x: x.topk(0)[1], FLOATS), (lambda x: torch.full_like(x, 2) ** x, BYTES),
        *((resized(mode, scale), torch.arange(11.0))
          for mode in ("nearest", "nearest-exact") for scale in (1.7, 0.37, 2.0)),
    ],
)  # fmt: skip
def test_values_at_the_edges(function, x):
    traced = tracing.traced(function, [x])
    param = graph.Var("x", type_of(x, "x"))
    module = graph.Module(
        {"main": graph.Function((param,), importer.GraphImporter(traced).run([param]))}
    )
    found, expected = graph.evaluate(module, x.numpy()), function(x).numpy()
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# -- what torch.compile keeps ----------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numbers_that_change_count(compiled):
    grid, scaled = compiled(lambda n: torch.arange(n) * 2), compiled(lambda x, k: x * k + 1)
    with torch.no_grad():
        for n in (3, 5, 7):
            assert grid(n).tolist() == [2 * k for k in range(n)]
        for k in (2, 2.5, 3, 0.5):
            check(array_of(scaled(torch.ones(2), k)), torch.ones(2) * k + 1)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_results_that_share_memory_share_it(compiled):
    def shared(x):
        y = x.clone()
        return y, y[1:]

    with torch.no_grad():
        whole, rest = compiled(shared)(torch.zeros(3))
    whole[1] = 5.0
    assert rest[0] == 5.0


def test_results_have_the_strides_of_pytorch(compiled):
    layer = nn.Conv2d(3, 4, 3).to(memory_format=torch.channels_last)
    x = torch.randn(2, 3, 6, 7).to(memory_format=torch.channels_last)
    with torch.no_grad():
        found, expected = compiled(layer)(x), layer(x)
    assert found.stride() == expected.stride()
    check(array_of(found), expected)


def test_threads_may_make_the_first_call_together(compiled):
    model, x = Block(4).eval(), torch.randn(1, 4, 5, 6)
    run = compiled(model)
    failed = []

    def call():
        try:
            with torch.no_grad():
                check(array_of(run(x)), model(x))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
