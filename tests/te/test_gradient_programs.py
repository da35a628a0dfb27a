"""Gradients of random graphs, and a network that is trained by kernels made of them."""

import numpy as np
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import dlcompiler as dlc
from dlcompiler import te
from tests.share import share_of
from tests.te.gradients import check_gradient, inputs_of

SHAPES = ((3, 4), (4, 3), (2, 6), (6,), (5,), (1, 3))
SMOOTH = ("sin", "cos", "tanh", "sigmoid", "atan", "erf", "asinh")


class Graph:
    """Draws stages that read those before them at random places."""

    def __init__(self, draw):
        self.draw = draw
        self.tensors = [
            te.placeholder(self.pick(*SHAPES), "float64", name=name) for name in ("A", "B")
        ]
        self.axes = []

    def pick(self, *choices):
        return self.draw(st.sampled_from(choices))

    def place(self, extent):
        """An index below `extent`, with the condition that it is inside, where it may not be."""
        axis, other = self.pick(*self.axes), self.pick(*self.axes)
        match self.pick("inside", "inside", "shifted", "window", "flat", "number"):
            case "inside" if axis.dom.min + axis.dom.extent <= extent:
                return axis + 0, None
            case "shifted":
                shift = self.pick(-1, 1, 2)
                return axis + shift, te.all(axis + shift >= 0, axis + shift < extent)
            case "window":
                at = axis * self.pick(1, 2, 3) + other * self.pick(1, 2) - self.pick(0, 1)
                return at, te.all(at >= 0, at < extent)
            case "flat":
                return (axis * self.pick(2, 4) + other) // self.pick(1, 2) % extent, None
            case "number":
                return self.pick(*range(extent)), None
        return axis % extent, None

    def element(self):
        tensor = self.pick(*self.tensors)
        places = [self.place(extent) for extent in tensor.shape]
        value = tensor[tuple(place for place, _ in places)]
        inside = [condition for _, condition in places if condition is not None]
        return te.if_then_else(te.all(*inside), value, 0.25) if inside else value

    def value(self, depth):
        if depth == 0 or self.draw(st.integers(0, 3)) == 0:
            return self.element()
        a = self.value(depth - 1)
        kind = self.pick("add", "sub", "mul", "div", "call", "max", "choose", "twice", "power")
        if kind == "call":
            return getattr(te, self.pick(*SMOOTH))(a)
        if kind == "twice":
            return a * te.cos(a) + a
        if kind == "power":
            return te.power(te.abs(a) + 0.5, 1.5)
        b = self.value(depth - 1)
        match kind:
            case "add":
                return a + b
            case "sub":
                return a - b * 0.5
            case "mul":
                return a * b
            case "div":
                return a / (b * b + 1.0)
            case "max":
                return self.pick(te.maximum, te.minimum)(a, b + 0.01)
        choose = self.pick(te.select, te.if_then_else)
        return choose(self.pick(*self.axes) > self.pick(0, 1), a, b)

    def stage(self, number):
        shape = self.pick(*SHAPES)
        reducer = self.pick(None, None, te.sum, te.sum, te.max, te.prod)
        count = self.pick(1, 2) if reducer else 0
        reduced = [
            te.reduce_axis(self.pick((0, 2), (0, 3), (1, 3)), name=f"k{n}") for n in range(count)
        ]

        def element(*axes):
            self.axes = [*axes, *reduced]
            value = self.value(2)
            return reducer(value, axis=reduced) if reducer else value

        self.tensors.append(te.compute(shape, element, name=f"T{number}"))

    def output(self):
        for number in range(self.draw(st.integers(1, 3))):
            self.stage(number)
        return self.tensors[-1]


@settings(
    max_examples=share_of(50), phases=[Phase.explicit, Phase.reuse, Phase.generate]
)  # each step to shrink is slow
@given(st.data(), st.integers(0, 2**16))
def test_random_graphs(data, seed):
    output = Graph(data.draw).output()
    if inputs_of(output):
        check_gradient(output, everywhere=seed % 8 == 0, seed=seed, tolerance=2e-5)


# -- a network that learns ------------------------------------------------------------------------

ROWS, WIDTH, HIDDEN, CLASSES = 32, 5, 16, 3


def network():
    """The loss of a network of two layers, and its inputs: data, targets, parameters."""
    X, T = te.placeholder((ROWS, WIDTH), name="X"), te.placeholder((ROWS, CLASSES), name="T")
    V, b = te.placeholder((WIDTH, HIDDEN), name="V"), te.placeholder((HIDDEN,), name="b")
    W, c = te.placeholder((HIDDEN, CLASSES), name="W"), te.placeholder((CLASSES,), name="c")
    program = te.notation(
        f"""
        Y[i, h] += X[i, k] * V[k, h]
        Z[i, h] = maximum(Y[i, h] + b[h], 0)
        U[i, j] += Z[i, h] * W[h, j]
        E[i, j] = U[i, j] + c[j] - T[i, j]
        L[()] = sum(E[i, j] * E[i, j] / {ROWS}, axis=(i, j))
        """,
        X=X, V=V, b=b, W=W, c=c, T=T,
    )  # fmt: skip
    return program[-1], [X, T], [V, b, W, c]


def by_hand(x, t, v, b, w, c):
    """The loss and its gradient, written by hand."""
    y = x @ v + b
    z = np.maximum(y, 0)
    e = z @ w + c - t
    de = 2 * e / len(x)
    dz = np.where(y >= 0, de @ w.T, 0)
    return (e * e).sum() / len(x), [x.T @ dz, dz.sum(0), z.T @ de, de.sum(0)]


def test_a_network_is_trained_by_its_gradients():
    loss, data, parameters = network()
    slopes = te.gradient(loss, parameters)
    assert [d.shape for d in slopes] == [p.shape for p in parameters]
    args = [*data, *parameters, loss, *slopes]
    s = te.create_schedule([loss.op, *(d.op for d in slopes)])
    for slope in slopes:
        s[slope].vectorize(s[slope].op.axis[-1])
    kernel = dlc.build(s, args)

    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, WIDTH)).astype("float32")
    t = np.stack([x[:, 0] * x[:, 1], np.sin(x[:, 2]), x.sum(1)], axis=1).astype("float32")
    known = [rng.normal(size=p.static_shape).astype("float32") * 0.3 for p in parameters]
    results = [np.empty(r.static_shape, "float32") for r in (loss, *slopes)]
    losses = []
    for _ in range(300):
        kernel(x, t, *known, *results)
        expected_loss, expected = by_hand(x, t, *known)
        np.testing.assert_allclose(results[0], expected_loss, rtol=1e-4)
        for got, want in zip(results[1:], expected, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-4)
        losses.append(float(results[0]))
        known = [p - 0.05 * d for p, d in zip(known, results[1:], strict=True)]
    assert losses[-1] < 0.1 * losses[0]
    assert dlc.verify(s, args).worst <= 1
