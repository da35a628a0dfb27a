"""The derivative of each operation, function and reduction; at a kink; and what has none."""

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import ExpressionError
from dlcompiler.ir.functions import FUNCTIONS
from dlcompiler.te.gradient import rules as gradient_rules
from tests.te.gradients import check_gradient, run_everywhere

INSIDE = ("acos", "asin", "atanh")
OF_ONE = [name for name, rules in gradient_rules.FUNCTIONS.items() if len(rules) == 1]
OF_TWO = [name for name, rules in gradient_rules.FUNCTIONS.items() if len(rules) == 2]
SHAPE = (3, 4)


def tensor(name, *shape, dtype="float64"):
    return te.placeholder(shape, dtype, name=name)


def mapped(element, *tensors, shape=SHAPE):
    return te.compute(shape, lambda *i: element(*(t[i] for t in tensors)), name="C")


def derivative(element, *numbers, dtype="float64"):
    """The derivatives of a function of numbers, where they are these."""
    tensors = [tensor(name, 1, dtype=dtype) for name, _ in zip("ABC", numbers, strict=False)]
    C = mapped(element, *tensors, shape=(1,))
    head = te.placeholder((1,), dtype, name="H")
    found = te.gradient(C, tensors, head)
    given = {t: np.array([n], dtype) for t, n in zip(tensors, numbers, strict=True)}
    given[head] = np.ones(1, dtype)
    read = {op.output(0) for op in te.post_order(found) if isinstance(op, te.PlaceholderOp)}
    results = run_everywhere(found, {t: a for t, a in given.items() if t in read})
    return [float(result[0]) for result in results]


@pytest.mark.campaign
@pytest.mark.parametrize(
    "name", [name for name in OF_ONE if name not in ("acosh", "ldexp", "tf32")]
)
def test_functions_of_one_number(name):
    A = tensor("A", *SHAPE)
    scale = 0.5 if name in INSIDE else 1.0
    check_gradient(mapped(lambda a: getattr(te, name)(a * scale), A))
    if name not in ("log", "log2", "log10", "sqrt", "rsqrt"):
        check_gradient(mapped(lambda a: getattr(te, name)(a * -0.4), A), everywhere=False)


def test_tf32_is_derived_as_a_conversion():
    A = tensor("A", 4, dtype="float32")
    (found,) = te.gradient(mapped(lambda a: te.tf32(a) * te.tf32(a), A, shape=(4,)), [A])
    a = np.array([1.0, 1 + 2**-12, -3.0, 0.1], "float32")
    np.testing.assert_array_equal(te.evaluate(found, [a]).sum(0), 2 * te.evaluate(te.tf32(A), [a]))


def test_acosh_above_one():
    check_gradient(mapped(lambda a: te.acosh(a + 1), tensor("A", *SHAPE)))


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("sign", [1, -1])
def test_functions_of_two_numbers(name, sign):
    A, B = tensor("A", *SHAPE), tensor("B", *SHAPE)
    function = te.power if name == "pow" else getattr(te, name)
    check_gradient(mapped(lambda a, b: function(a * 2, b * sign), A, B), everywhere=sign == 1)


def test_operations():
    A, B = tensor("A", *SHAPE), tensor("B", *SHAPE)
    check_gradient(mapped(lambda a, b: (a + b) * (a - b) / (a * b) - (-a), A, B))
    check_gradient(mapped(lambda a, b: te.maximum(a, b) * te.minimum(a, 2 * b), A, B))
    check_gradient(mapped(lambda a, b: a**3 + 2.0**b + a**2, A, B))


def test_ldexp():
    A, N = tensor("A", *SHAPE), tensor("N", *SHAPE, dtype="int32")
    check_gradient(mapped(te.ldexp, A, N))


@pytest.mark.parametrize("name", sorted(gradient_rules.STEPS))
def test_steps_add_nothing(name):
    A = tensor("A", *SHAPE)
    (found,) = check_gradient(mapped(lambda a: a * getattr(te, name)(a + 0.3), A))
    assert f"{name}(" in te.notation_text(found)
    (found,) = te.gradient(mapped(getattr(te, name), A), [A])
    assert te.notation_text(found) == "A_grad[p0, p1, ax0, ax1] = float64(0.0)"


def test_every_function_of_floats_has_a_rule_or_is_refused():
    floats = {n for n, s in FUNCTIONS.items() if s.domain in ("float", "number")}
    of_numbers = {name for name in floats if FUNCTIONS[name].result == "same"}
    assert of_numbers - {*gradient_rules.FUNCTIONS, *gradient_rules.STEPS} == {"nextafter"}


def test_what_passes_through_integers_conditions_and_indices_adds_nothing():
    A, B = tensor("A", 4), tensor("B", 4)

    def element(i):
        index = te.minimum(te.maximum(A[i].astype("int32"), 0), 3)
        return te.select(A[i] > 1.0, B[index], B[i]) * A[i].astype("int8").astype("float64")

    (found,) = te.gradient(te.compute((4,), element, name="C"), [A])
    assert te.notation_text(found) == "A_grad[p0, ax0] = float64(0.0)"


# -- kinks and ends -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_the_first_of_equal_operands(name):
    assert derivative(getattr(te, name), 2.0, 2.0) == [1, 0]
    assert derivative(lambda a: getattr(te, name)(a, 2.0), 2.0) == [1]
    assert derivative(lambda a: getattr(te, name)(2.0, a), 2.0) == [0]


def test_abs_at_0():
    assert derivative(te.abs, 0.0) == [1]
    assert derivative(te.abs, -2.0) == [-1]


def test_powers_of_0_and_to_0():
    assert derivative(te.power, 0.0, 3.0) == [0, 0]
    assert derivative(te.power, 0.0, 1.0) == [1, 0]
    assert derivative(te.power, 2.0, 0.0) == [0, pytest.approx(np.log(2))]
    assert derivative(lambda a: a**0.0, 0.0) == [0]
    assert derivative(lambda a: a**3.0, -2.0) == [12]


def test_the_side_that_is_not_chosen_adds_nothing_even_where_it_has_no_value():
    assert derivative(lambda a: te.select(a > 0, te.sqrt(a), 0.0), -1.0) == [0]
    assert derivative(lambda a: te.if_then_else(a > 0, te.log(a), a * 3), 0.0) == [3]


def test_a_value_used_on_both_sides_of_a_choice():
    def element(a, b):
        shared = te.sin(a * b)
        return te.if_then_else(a > b, shared * 2, te.exp(shared)) + te.select(b > 1, shared, a)

    check_gradient(mapped(element, tensor("A", *SHAPE), tensor("B", *SHAPE)))


def test_what_is_used_on_both_sides_has_no_condition():
    A = tensor("A", 4)

    def element(i):
        shared = te.sin(A[i])
        return te.if_then_else(i > 1, shared * 2, te.select(i > 0, -shared, shared + 1))

    (found,) = check_gradient(te.compute((4,), element, name="C"))
    assert te.notation_text(found) == (
        "A_grad[i] = (H[i]*2.0 if i > 1 else (-H[i] if i > 0 else H[i]))*cos(A[i])"
    )


def test_what_is_guarded_is_not_read_elsewhere():
    A = tensor("A", 4)

    def element(i):
        above, below = te.sin(A[i - 1]), te.cos(A[i - 1])
        first = te.if_then_else(i >= 1, te.if_then_else(i < 5, above * below, 0.0), 0.5)
        return first + te.if_then_else(te.all(i >= 1, i < 5), te.exp(above), 1.0)

    check_gradient(te.compute((7,), element, name="C"))


def test_conversions_between_floats():
    A = tensor("A", 3, dtype="float32")
    C = te.compute((3,), lambda i: te.exp(A[i].astype("float64")).astype("float16"), name="C")
    (found,) = te.gradient(C, [A], tensor("H", 3, dtype="float16"))
    assert found.dtype == "float32"
    assert te.notation_text(found) == "A_grad[i] = float32(float64(H[i])*exp(float64(A[i])))"


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_other_floats(dtype):
    k = te.reduce_axis((0, 3), name="k")
    A, B = te.placeholder((2, 3), dtype, name="A"), te.placeholder((3,), dtype, name="B")
    C = te.compute((2,), lambda i: te.sum(te.exp(A[i, k]) * B[k] / 2, axis=k), name="C")
    H = te.placeholder((2,), dtype, name="H")
    dA, dB = te.gradient(C, [A, B], H)
    assert dA.dtype == dB.dtype == dtype
    kind = te.evaluate(te.compute((1,), lambda i: te.const(0, dtype)), {}).dtype
    a, b, h = (np.random.default_rng(0).uniform(0.5, 1, s).astype(kind) for s in ((2, 3), 3, 2))
    wide = [x.astype("float64") for x in (a, b, h)]
    found = te.evaluate([dA, dB], {A: a, B: b, H: h})
    powers = np.exp(wide[0])
    expected = wide[2][:, None] * powers * wide[1] / 2, (wide[2][:, None] * powers / 2).sum(0)
    for result, want in zip(found, expected, strict=True):
        np.testing.assert_allclose(result.astype("float64"), want, rtol=0.05)


# -- reductions -----------------------------------------------------------------------------------


def rows(reducer, extent=5, *, where=None, start=0, scale=1.0):
    A = tensor("A", 3, 5)
    k = te.reduce_axis((start, extent), name="k")
    condition = {} if where is None else {"where": where(k)}
    value = (lambda a: a) if scale == 1 else (lambda a: a * scale)
    return A, te.compute((3,), lambda i: reducer(value(A[i, k]), axis=k, **condition), name="C")


@pytest.mark.parametrize("reducer", [te.sum, te.prod, te.max, te.min])
def test_reductions(reducer):
    check_gradient(rows(reducer)[1])
    check_gradient(rows(reducer, start=2)[1])
    check_gradient(rows(reducer, where=lambda k: k % 2 > 0)[1])
    check_gradient(rows(reducer, extent=1, scale=3.0)[1])


@pytest.mark.parametrize("reducer", [te.sum, te.prod, te.max, te.min])
def test_reductions_over_several_axes(reducer):
    A, B = tensor("A", 2, 3, 4), tensor("B", 3)
    k, m = te.reduce_axis((0, 3), name="k"), te.reduce_axis((1, 4), name="m")
    C = te.compute((2,), lambda i: reducer(A[i, k, m] * B[k], axis=[k, m]), name="C")
    check_gradient(C)


def test_products_of_values_that_are_0():
    A, C = rows(te.prod)
    a = np.arange(1.0, 16).reshape(3, 5)
    a[0, 2] = a[1, 1] = a[1, 3] = 0
    (found,) = check_gradient(C, arrays={A: a})
    assert te.notation_text(found) == (
        "C_others[i, k] = prod(A[i, k_1], axis=k_1, where=k_1 != k)\n"
        "A_grad[i, k] = H[i]*C_others[i, k]"
    )


@pytest.mark.parametrize("reducer", [te.max, te.min])
def test_the_first_of_equal_values(reducer):
    A, C = rows(reducer)
    H = tensor("H", 3)
    (found,) = te.gradient(C, [A], H)
    a = np.ones((3, 5))
    a[1, :2] = 2 if reducer is te.min else 0
    (result,) = run_everywhere([found], {A: a, H: np.array([1.0, 2, 3])})
    expected = np.zeros((3, 5))
    expected[[0, 1, 2], [0, 2, 0]] = 1, 2, 3
    np.testing.assert_array_equal(result, expected)


def test_the_largest_of_nothing():
    B, H = tensor("B", 5), tensor("H", 3)
    A, C = rows(te.max, where=lambda k: B[k] > 5)
    given = {B: np.ones(5), A: np.ones((3, 5)), H: np.ones(3)}
    (result,) = run_everywhere(te.gradient(C, [A], H), given)
    np.testing.assert_array_equal(result, np.zeros((3, 5)))


OWN = {
    "add": (lambda x, y: x + y, 0),
    "mul": (lambda x, y: y * x, 1),
    "max": (te.maximum, -np.inf),
    "min": (te.minimum, np.inf),
    "the greater": (lambda x, y: te.select(y > x, y, x), -np.inf),
    "the other of the smaller": (lambda x, y: te.select(y < x, x, y), -np.inf),
    "the smaller": (lambda x, y: te.if_then_else(x <= y, x, y), np.inf),
}


@pytest.mark.parametrize("name", OWN)
def test_reductions_of_the_users_own(name):
    combine, identity = OWN[name]
    reducer = te.comm_reducer(combine, lambda dtype: te.const(identity, dtype), name="own")
    check_gradient(rows(reducer)[1])


def test_no_points_at_all():
    A, k = tensor("A", 3, 0), te.reduce_axis((0, 0), name="k")
    B = tensor("B", 3)
    C = te.compute((3,), lambda i: te.sum(A[i, k] * B[i], axis=k), name="C")
    H = tensor("H", 3)
    dA, dB = te.gradient(C, [A, B], H)
    assert dA.shape == (3, 0)
    np.testing.assert_array_equal(te.evaluate(dB, {}), np.zeros(3))


# -- several results, several gradients -----------------------------------------------------------


def test_an_operation_of_several_outputs():
    A, B = tensor("A", 4), tensor("B", 4)
    C, D = te.compute((4,), lambda i: (A[i] * B[i], te.exp(A[i])), name="C")
    check_gradient(te.compute((4,), lambda i: C[i] * D[3 - i] + te.sin(D[i]), name="E"))
    check_gradient(te.compute((4,), lambda i: te.sin(D[i]), name="E"))
    assert te.notation_text(*te.gradient(D, [A, B])).splitlines()[1:] == [
        "A_grad[p0, i] = C_v1[i] if i == p0 else 0.0",
        "B_grad[p0, ax0] = float64(0.0)",
    ]


def test_second_derivatives():
    A, k = tensor("A", 4), te.reduce_axis((0, 4), name="k")
    E = te.compute((4,), lambda i: te.exp(A[i] * A[(i + 1) % 4]), name="E")
    L = te.compute((), lambda: te.sum(E[k] * A[k], axis=k), name="L")
    (slope,) = te.gradient(L, A)
    (hessian,) = te.gradient(slope, A)
    assert hessian.shape == (4, 4)
    a = np.array([0.3, 0.7, 0.5, 0.9])
    (result,) = run_everywhere([hessian], {A: a})
    np.testing.assert_allclose(result, result.T, rtol=1e-12)
    check_gradient(slope)


def test_gradients_of_several_tensors_in_one_kernel():
    A, B = tensor("A", 3), tensor("B", 3)
    C, D = mapped(lambda a, b: a * b, A, B, shape=(3,)), mapped(te.exp, A, shape=(3,))
    H = tensor("H", 3)
    found = [*te.gradient(C, A, H), *te.gradient(D, A, H)]
    a, b, h = np.random.default_rng(0).normal(size=(3, 3))
    results = run_everywhere(found, {A: a, B: b, H: h})
    np.testing.assert_allclose(results[0], h * b)
    np.testing.assert_allclose(results[1], h * np.exp(a))


# -- refusals -------------------------------------------------------------------------------------


def refusal(output, inputs, head=None):
    with pytest.raises(ExpressionError) as caught:
        te.gradient(output, inputs, head)
    return str(caught.value)


def test_a_function_without_a_derivative():
    A = tensor("A", *SHAPE)
    C = mapped(lambda a: te.nextafter(a * 2, 1.0), A)
    assert refusal(C, A) == (
        "te.gradient of C: C: the derivative of nextafter is not known\n"
        "  got       nextafter(A[i0, i1]*2.0, 1.0)\n"
        "  hint      use functions whose derivatives are known"
    )


def test_a_start_of_its_own():
    A, k = tensor("A", 4), te.reduce_axis((0, 4), name="k")
    C = te.compute((), lambda: te.sum(A[k], axis=k, init=2.0), name="C")
    assert refusal(C, A) == (
        "te.gradient of C: C: the derivative of a reduction with init= is not supported\n"
        "  got       init=2.0\n"
        "  hint      leave out init=, and add the start value in another te.compute"
    )


def test_several_values_together():
    A, k = tensor("A", 4), te.reduce_axis((0, 4), name="k")
    position, value = te.compute((), lambda: te.argmax(A[k], axis=k), name="C")
    D = te.compute((), lambda: value[()] * 2, name="D")
    assert refusal(D, A) == (
        "te.gradient of D: C.v1: the derivative of a reduction of several values together is not "
        "supported\n"
        "  got       argmax\n  hint      use te.max or te.min"
    )
    E = te.compute((), lambda: A[position[()]], name="E")
    check_gradient(E)


def test_a_reduction_without_a_derivative():
    A, k = tensor("A", 4), te.reduce_axis((0, 4), name="k")
    own = te.comm_reducer(
        lambda x, y: te.log(te.exp(x) + te.exp(y)), lambda d: te.const(-np.inf, d), name="logsum"
    )
    text = refusal(te.compute((), lambda: own(A[k], axis=k), name="C"), A)
    assert "C: the derivative of this reducer is not known\n" in text
    assert "got       logsum: log(exp(x0) + exp(y0))\n" in text
    assert "expected  a sum, a product, a maximum or a minimum, with its own identity" in text


@pytest.mark.parametrize(
    ("combine", "identity", "shown"),
    [
        (lambda x, y: x * y, 2, "own: x0*y0"),
        (te.maximum, 0, "own: max(x0, y0)"),
        (lambda x, y: x + x, 0, "own: x0 + x0"),
        (lambda x, y: te.select(x > 0, x, y), 0, "own: select(x0 > 0.0, x0, y0)"),
    ],
)
def test_what_looks_like_an_operation(combine, identity, shown):
    A, k = tensor("A", 4), te.reduce_axis((0, 4), name="k")
    own = te.comm_reducer(combine, lambda d: te.const(identity, d), name="own")
    text = refusal(te.compute((), lambda: own(A[k], axis=k), name="C"), A)
    assert f"got       {shown}\n" in text


def test_integers():
    A, B = tensor("A", 4, dtype="int32"), tensor("B", 4)
    C = te.compute((4,), lambda i: A[i] + 1, name="C")
    D = te.compute((4,), lambda i: A[i] * B[i], name="D")
    assert refusal(C, A) == (
        "te.gradient: C is not a tensor of floats\n  got       int32\n"
        "  because   only floats have derivatives\n"
        "  hint      convert it: A.astype('float32')"
    )
    assert "te.gradient of D: A is not a tensor of floats" in refusal(D, [B, A])


class Outside:
    """An operation of another kind than te.compute."""

    name, axis, reduce_axis = "X", (), ()

    def __init__(self, *inputs):
        self.input_tensors = inputs
        self.outputs = (te.Tensor("X", (4,), "float64", self),)

    def __repr__(self):
        return "outside(X)"


def test_an_operation_of_another_kind():
    A, B = tensor("A", 4), tensor("B", 4)
    X = Outside(B).outputs[0]
    C = te.compute((4,), lambda i: A[i] * X[i], name="C")
    assert te.notation_text(*te.gradient(C, A, tensor("H", 4))) == "A_grad[i] = H[i]*X[i]"
    assert refusal(C, [A, B]) == (
        "te.gradient of C: the derivative of X is not known\n  got       outside(X)\n"
        "  expected  only te.compute between the inputs and the output"
    )


def test_what_is_no_tensor():
    A = tensor("A", 4)
    C = te.compute((4,), lambda i: A[i] + 1, name="C")
    assert refusal(C[0], A).startswith("te.gradient: not a tensor\n  got       TensorLoad(C[0])")
    assert "te.gradient of C: not a tensor\n  got       'A'" in refusal(C, ["A"])
    assert "te.gradient of C: head: not a tensor" in refusal(C, A, np.ones(4))


def test_heads_that_do_not_fit():
    A = tensor("A", 4, 3)
    C = te.compute((4, 3), lambda i, j: A[i, j] + 1, name="C")
    assert refusal(C, A, tensor("H", 4, 2)) == (
        "te.gradient of C: the shape of the head does not end with that of the output\n"
        "  got       H: (4, 2)\n  expected  (…, 4, 3)"
    )
    assert "got       H: (3,)" in refusal(C, A, tensor("H", 3))
    assert refusal(C, A, tensor("H", 4, 3, dtype="float32")) == (
        "te.gradient of C: the dtype of the head differs from that of the output\n"
        "  got       float32\n"
        "  expected  float64"
    )


def test_more_derivatives_than_a_tensor_holds():
    A = tensor("A", 2**11, 2**10)
    C = te.compute(A.shape, lambda i, j: A[i, j] + 1, name="C")
    text = refusal(C, A)
    assert text.startswith("te.gradient of C: the tensor is too large\n  got       4398046511104")


def test_an_expression_that_is_too_deep_to_be_differentiated():
    def element(a):
        for _ in range(100):
            a = te.tanh(a)
        return a

    text = refusal(mapped(element, A := tensor("A", *SHAPE)), A, tensor("H", *SHAPE))
    assert text.startswith("te.gradient of C: the expression is nested too deeply\n  got       ")
