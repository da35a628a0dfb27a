"""Distance vectors: examples from text books, and random programs against isl and a plain run."""

import random

import islpy as isl
import pytest

from dlcompiler import te
from dlcompiler.analysis import dependences, dependences_of
from dlcompiler.ir import Buffer, For, If, Load, PrimFunc, Store, Var, index_const
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from tests.analysis.exact import conflicts, points
from tests.analysis.programs import Programs
from tests.analysis.test_dependences import kind_of

i, j, k = Var("i"), Var("j"), Var("k")
A, B = (Buffer(name, (40, 40), "float32") for name in "AB")
CASES = 40


def of(body):
    """Each dependence as ``kind (distances) nearest``."""
    found = dependences(PrimFunc("main", (A, B), (A, B), body))
    return sorted(f"{each.kind} {each.vector} {each.vector.nearest}" for each in found)


def nest(body, *loops):
    for var, extent in reversed(loops):
        body = For(var, index_const(extent), "serial", body)
    return body


def test_a_stencil_has_a_constant_vector():
    store = Store(A, (i + 1, j), Load(A, (i, j + 2)) * 2)
    assert of(nest(store, (i, 8), (j, 8))) == ["flow (1, -2) (1, -2)"]


def test_the_outer_loop_carries_although_the_inner_distance_is_negative():
    store = Store(A, (i, j), Load(A, (i - 1, j + 1)) + Load(A, (i, j - 1)))
    assert of(nest(If(i * j >= 1, store), (i, 8), (j, 8))) == [
        "flow (0, 1) (0, 1)",
        "flow (1, -1) (1, -1)",
    ]


def test_a_reduction_is_nearest_in_the_next_iteration():
    store = Store(A, (i, j), Load(A, (i, j)) + Load(B, (i, k)))
    body = nest(store, (i, 4), (j, 4), (k, 8))
    assert of(body) == [f"{kind} (0, 0, <) (0, 0, 1)" for kind in ("anti", "flow", "output")]


def test_a_split_reduction_goes_back_in_the_inner_loop():
    store = Store(A, (i, i), Load(A, (i, i)) + Load(B, (i, j * 4 + k)))
    body = nest(store, (i, 3), (j, 5), (k, 4))
    assert [text for text in of(body) if text.startswith("flow")] == [
        "flow (0, 0, <) (0, 0, 1)",
        "flow (0, <, *) (0, 1, -3)",
    ]


def test_distances_that_vary_are_directions():
    store = Store(A, (i * 2, j), Load(A, (i, j)) * 2)
    assert of(nest(store, (i, 8), (j, 8))) == ["flow (<, 0) (1, 0)"]
    store = Store(A, (i + j, j), Load(A, (8 - i, j)) * 2)
    kinds = of(nest(store, (i, 8), (j, 8)))
    assert "flow (<, 0) (1, 0)" in kinds


def test_huge_extents_cost_nothing():
    huge = Buffer("H", (2**40,), "float32")
    store = Store(huge, (i * 3,), Load(huge, (i * 3 + 3000,)) * 2)
    func = PrimFunc("main", (huge,), (huge,), nest(store, (i, 2**30)))
    (found,) = dependences(func)
    assert (found.kind, str(found.vector), found.vector.nearest) == ("anti", "(1000)", (1000,))


def test_a_distance_that_depends_on_a_symbol_is_not_made_up():
    n = te.var("n")
    X = te.placeholder((n,), name="X")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((4,), lambda a: te.sum(X[k], axis=k), name="C")
    s = create_schedule(C.op)
    s[C].split(k, nparts=2)
    found = dependences_of(lower(s, [X, C], simple_mode=True), "C")
    flow = {str(e.vector): e.vector.nearest for e in found if e.loop and e.kind == "flow"}
    assert flow == {"(0, 1, *)": None, "(0, 0, <)": (0, 0, 1)}


def matmul():
    X, Y = te.placeholder((8, 8), name="A"), te.placeholder((8, 8), name="B")
    r = te.reduce_axis((0, 8), name="k")
    C = te.compute((8, 8), lambda a, b: te.sum(X[a, r] * Y[r, b], axis=r), name="C")
    return create_schedule(C.op), [X, Y, C]


def test_those_of_a_stage():
    s, args = matmul()
    found = dependences_of(lower(s, args, simple_mode=True), "C")
    assert [(e.kind, str(e.vector), e.is_reduction) for e in found if e.loop is None] == [
        ("flow", "(0, 0)", False),  # from the first value to the updates
        ("output", "(0, 0)", False),
        ("anti", "(0, 0, 0)", False),  # an update reads before it writes
    ]
    carried = {(e.kind, str(e.vector), e.loop.var.name) for e in found if e.loop and e.is_reduction}
    assert carried == {(kind, "(0, 0, <)", "k") for kind in ("flow", "anti", "output")}


def test_a_stage_in_a_loop_of_its_reader_and_a_barrier_between_threads():
    X = te.placeholder((8, 8), name="X")
    P = te.compute((8, 8), lambda a, b: X[a, b] + 1.0, name="P")
    Q = te.compute((8, 8), lambda a, b: P[a, b] * 2.0, name="Q")
    s = create_schedule(Q.op)
    assert dependences_of(lower(s, [X, Q], simple_mode=True), "P") == ()  # no loop around both
    s[P].compute_at(s[Q], s[Q].op.axis[0])
    (found,) = dependences_of(lower(s, [X, Q], simple_mode=True), "P")
    assert (found.kind, str(found.vector), found.loop) == ("flow", "(0)", None)
    s[Q].bind(s[Q].op.axis[0], te.thread_axis("blockIdx.x"))
    s[P].set_scope("shared")
    for stage in (P, Q):
        s[stage].bind(stage.op.axis[1], te.thread_axis("threadIdx.x"))
    found = dependences_of(lower(s, [X, Q], simple_mode=True), "P")
    assert {each.loop for each in found} <= {None}, "each thread reads what it wrote"


def test_an_update_that_is_no_reduction():
    for value in (Load(A, (i, i)) - 1, Load(A, (i, i)) + Load(A, (i, j))):
        func = PrimFunc("main", (A,), (A,), nest(Store(A, (i, i), value), (i, 4), (j, 4)))
        assert not any(each.is_reduction for each in dependences(func))


def test_data_in_an_index_leaves_the_distance_open():
    index = Buffer("I", (40,), "int32")
    target = Load(index, (i,)).astype("index")
    func = PrimFunc("main", (index, A), (A,), nest(Store(A, (target, j), j), (i, 4), (j, 4)))
    assert {(str(e.vector), e.vector.nearest, bool(e.doubt)) for e in dependences(func)} == {
        ("(<, 0)", None, True)
    }


# -- random programs ------------------------------------------------------------------------------


def deltas_of(a, b, depth, common):
    """isl's distances of two accesses over the common loops, the first `depth` of them equal."""
    pairs = a.relation(common).apply_range(b.relation(common).reverse())
    order = [f"x{n} = y{n}" for n in range(depth)] + [f"x{depth} < y{depth}"]
    names = [", ".join(f"{name}{n}" for n in range(common)) for name in "xy"]
    ordered = isl.Map(f"{{ [{names[0]}] -> [{names[1]}] : {' and '.join(order)} }}")
    return pairs.intersect(ordered).deltas()


def numbers(found, n):
    """The distances that occur in dimension n of a set; programs are small."""
    values = []
    other = [d for d in range(found.dim(isl.dim_type.set)) if d != n]
    for d in reversed(other):
        found = found.project_out(isl.dim_type.set, d, 1)
    found.foreach_point(
        lambda point: values.append(point.get_coordinate_val(isl.dim_type.set, 0).get_num_si())
    )
    return set(values)


def component(values):
    if len(values) == 1:
        return next(iter(values))
    signs = frozenset((value > 0) - (value < 0) for value in values)
    names = {"+": "<", "+0": "<=", "-": ">", "-0": ">=", "+-": "!=", "+-0": "*"}
    text = "".join(c for c, sign in (("+", 1), ("-", -1), ("0", 0)) if sign in signs)
    return names[text]


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(4))
def test_random_programs_have_the_vectors_that_isl_finds(part):
    for number in range(part, CASES, 4):
        func = Programs(random.Random(f"vectors:{number}")).func()
        program = points(func)
        found = dependences(func)
        assert not any(each.doubt for each in found)
        got = {
            (each.loop.statement, kind_of(each.source, each.sink), each.buffer,
             each.vector.distances, each.vector.nearest)
            for each in found
        }  # fmt: skip
        expected = {
            (loops[-1], kind_of(a, b), a.buffer, *vector_of(a, b, len(loops) - 1))
            for loops in program.loops
            for a, b, _ in conflicts(program, loops[-1], ordered=True)
        }
        assert got == expected, f"case vectors:{number}\n{func}"


def vector_of(a, b, depth):
    """The distances and the nearest of them, by isl."""
    common = sum(1 for x, y in zip(a.loops, b.loops, strict=False) if x is y)
    exact = deltas_of(a, b, depth, common)
    least = exact.lexmin().sample_point()
    nearest = tuple(
        least.get_coordinate_val(isl.dim_type.set, n).get_num_si() for n in range(common)
    )
    return tuple(component(numbers(exact, n)) for n in range(common)), nearest
