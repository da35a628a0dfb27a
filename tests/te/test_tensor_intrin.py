"""Declarations of tensor intrinsics, and the ones that are shipped."""

import gc

import pytest

from dlcompiler import te
from dlcompiler.codegen.gpu import intrinsics as of_gpus
from dlcompiler.codegen.llvm import intrinsics
from dlcompiler.errors import ExpressionError
from dlcompiler.ir import Buffer, For, Load, Store, Var, index_const
from dlcompiler.target import resolve
from dlcompiler.target.gpus import INSTRUCTIONS
from dlcompiler.target.presets import LLVM_EMITS
from dlcompiler.te.intrinsics.library import FAMILIES, families_for
from tests.intrinsics import product, row_sums


def refusal(op, fcompute=lambda ins, outs: "fma_tile", **kwargs):
    with pytest.raises(ExpressionError) as error:
        te.decl_tensor_intrin(op, fcompute, "mine", **kwargs)
    return str(error.value)


def doubled(shape=(4,), dtype="float32"):
    a = te.placeholder(shape, dtype, "a")
    return a, te.compute(shape, lambda *i: a[i] * te.const(2, dtype), name="c")


# -- what may be declared --------------------------------------------------------------------------


def test_buffers_that_the_function_gets_stand_for_the_tensors():
    a, c = doubled((4, 8))
    seen = {}

    def carry_out(ins, outs):
        seen.update(ins=ins, outs=outs)
        return "fma_tile"

    intrin = te.decl_tensor_intrin(c.op, carry_out, "mine", binds={a: (None, 1)})
    (into,), (out,) = seen["ins"], seen["outs"]
    assert (into.name, into.shape, into.dtype) == ("a", (4, 8), "float32")
    assert str(into.strides[0]) == "a.stride0"
    assert into.strides[1] == 1
    assert out.name == "c"
    assert intrin.strides == {a: (None, 1), c: (None, None)}
    assert intrin.parts == {"body": "fma_tile"}


def test_the_parts_of_a_reduction():
    _, _, C = product(4, 4, 4)
    made = te.decl_tensor_intrin(C.op, lambda i, o: ("b", None, "u"), "mine")
    assert made.parts == {"body": "b", "update": "u"}
    assert made.is_reduction
    assert repr(made) == f"TensorIntrin({made.id}: C[i, j] += A[i, k]*B[k, j])"


def test_the_same_declaration_is_the_same_intrinsic():
    assert row_sums() is row_sums()
    assert row_sums().id.startswith("row_sums#")
    assert row_sums(8).id != row_sums(4).id != row_sums(only=("body",)).id


LONG_NAME = f"gemm_f32_{'9' * 5000}x1x1"


@pytest.mark.parametrize("name", [5, None, [], LONG_NAME], ids=lambda name: str(name)[:9])
def test_what_is_no_name_of_an_intrinsic(name):
    with pytest.raises(ExpressionError, match="there is no intrinsic of this name"):
        te.tensor_intrin(name)


def test_an_intrinsic_is_found_by_its_name_while_it_is_in_use():
    intrin = row_sums(5)
    name = intrin.id
    assert te.tensor_intrin(name) is intrin
    del intrin
    gc.collect()
    with pytest.raises(ExpressionError, match="there is no intrinsic of this name"):
        te.tensor_intrin(name)


def test_a_window_that_is_read_without_gaps():
    a = te.placeholder((6,), name="a")
    r = te.reduce_axis((0, 3), name="r")
    c = te.compute((4,), lambda i: te.sum(a[i + r], axis=r), name="c")
    assert te.decl_tensor_intrin(c.op, lambda i, o: "any", "window").inputs == (a,)


# -- what may not ----------------------------------------------------------------------------------


def test_an_input_is_no_computation():
    assert refusal(te.placeholder((4,), name="a").op) == (
        "decl_tensor_intrin mine: not a computation\n"
        "  got       placeholder(a)\n"
        "  expected  C.op of a computed tensor C"
    )


def test_inputs_that_are_computed():
    _, b = doubled()
    c = te.compute((4,), lambda i: b[i] + 1.0, name="d")
    assert refusal(c.op) == (
        "decl_tensor_intrin mine: the input c is itself computed\n"
        "  expected  placeholders\n"
        "  hint      write the whole computation as one te.compute"
    )


def test_symbolic_shapes():
    a = te.placeholder((te.var("n"),), name="a")
    c = te.compute(a.shape, lambda i: a[i] * 2.0, name="c")
    assert refusal(c.op) == (
        "decl_tensor_intrin mine: an extent is not a positive number\n"
        "  got       n\n"
        "  expected  fixed shapes\n"
        "  because   an instruction has a fixed number of elements"
    )


def test_too_many_points():
    _, c = doubled((2**11, 2**10))
    assert (
        "the computation has too many points\n  got       2097152\n  expected  at most 1048576"
        in refusal(c.op)
    )


def test_several_outputs():
    a = te.placeholder((4,), name="a")
    c, _ = te.compute((4,), lambda i: (a[i], a[i] + 1.0), name="c")
    assert refusal(c.op) == (
        "decl_tensor_intrin mine: the computation has several outputs\n  got       2\n  expected  1"
    )


def test_reducers_of_the_users_own_and_conditions():
    a = te.placeholder((4, 3), name="a")
    k = te.reduce_axis((0, 3), name="k")
    own = te.comm_reducer(lambda x, y: x + y, lambda t: te.const(0, t), name="plus")
    c = te.compute((4,), lambda i: own(a[i, k], axis=k), name="c")
    assert "a reducer defined by te.comm_reducer cannot be matched\n  got       plus" in refusal(
        c.op
    )
    c = te.compute((4,), lambda i: te.sum(a[i, k], axis=k, where=k < 2), name="c")
    assert "a reduction with where= or init= cannot be matched" in refusal(c.op)
    c = te.compute((4, 3), lambda i, j: te.if_then_else(i < 2, a[i, j], 0.0), name="c")
    assert "which elements are read depends on a condition" in refusal(c.op)


@pytest.mark.parametrize(
    "element",
    [
        lambda a, i: a[i * 2],  # gaps
        lambda a, i: a[i],  # the second half is not read
        lambda a, i: a[0],
    ],
)
def test_inputs_that_are_not_read_as_a_whole(element):
    a = te.placeholder((8,), name="a")
    c = te.compute((4,), lambda i: element(a, i), name="c")
    assert refusal(c.op) == (
        "decl_tensor_intrin mine: the input a is not read as a whole\n"
        "  got       shape (8,)\n"
        "  hint      give it the shape of the elements that are read, without gaps"
    )


def test_a_diagonal_is_no_box():
    a = te.placeholder((4, 4), name="a")
    c = te.compute((4,), lambda i: a[i, i], name="c")
    assert "the input a is not read as a whole" in refusal(c.op)


def test_what_carries_it_out():
    _a, c = doubled()
    assert refusal(c.op, lambda i, o: 3) == (
        "decl_tensor_intrin mine: body: not an implementation of an intrinsic\n"
        "  got       3\n"
        "  expected  the name of an emitter, or a statement of the loop IR"
    )
    assert refusal(c.op, lambda i, o: ("b", "r")) == (
        "decl_tensor_intrin mine: the function returned too many parts\n"
        "  got       2\n"
        "  expected  body"
    )
    assert refusal(c.op, lambda i, o: None) == (
        "decl_tensor_intrin mine: neither body nor update is given\n"
        "  got       None\n"
        "  expected  a body or an update: the name of an emitter, or a statement"
    )
    _, _, C = product(2, 2, 2)
    assert "neither body nor update is given\n  got       reset" in refusal(
        C.op, lambda i, o: (None, "r", None)
    )


def test_statements_over_other_buffers():
    _, c = doubled()
    other, i = Buffer("other", (4,), "float32"), Var("i")

    def reads(ins, outs):
        return For(i, index_const(4), "serial", Store(outs[0], (i,), Load(other, (i,))))

    def writes(ins, outs):
        return For(i, index_const(4), "serial", Store(ins[0], (i,), Load(ins[0], (i,))))

    hint = "\n  hint      it may use only the buffers that the function gets, or that it allocates"
    head = "decl_tensor_intrin mine: body: the statement is not valid: "
    assert refusal(c.op, reads) == f"{head}load of other, which is not allocated here{hint}"
    assert refusal(c.op, writes) == f"{head}store to a, which is not an output{hint}"


def test_binds_that_do_not_fit():
    a, c = doubled()
    other, _ = doubled()
    assert "binds has a tensor that op does not use" in refusal(c.op, binds={other: (1,)})
    assert refusal(c.op, binds={a: (1, 1)}) == (
        "decl_tensor_intrin mine: the strides of a do not fit it\n"
        "  got       (1, 1)\n"
        "  expected  1, each a number or None"
    )
    assert refusal(c.op, binds={a: Buffer("a", (5,), "float32")}) == (
        "decl_tensor_intrin mine: the buffer bound to a does not fit it\n"
        "  got       float32[5]\n"
        "  expected  float32[4]"
    )


# -- the shipped ones ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gemm_f32_6x16x64", "gemv_f32_16x3", "dot4_s8s8_8x1"])
def test_shipped_intrinsics_have_plain_names(name):
    intrin = te.tensor_intrin(name)
    assert intrin.id == intrin.name == name
    assert te.tensor_intrin(name) is intrin


@pytest.mark.parametrize(
    "name",
    ["gemm_f32", "gemm_f32_4x4", "gemm_f32_0x4x4", "gemm_f32_04x4x4", "gemm_f64_4x4x4", "", "x#1",
     "gemm_f32_64x64x4", "os.system"],
)  # fmt: skip
def test_names_of_no_intrinsic(name):
    with pytest.raises(ExpressionError, match="there is no intrinsic of this name"):
        te.tensor_intrin(name)


def named(dtypes, data, reduced):
    """Return the shipped intrinsics for a result and inputs of these dtypes, and these extents."""
    families = families_for(dtypes[0], dtypes[1:])
    return [name for family in families if (name := family.fitting(data, reduced))]


def test_what_fits_what_loops_run_through():
    floats = ("float32",) * 3
    assert named(floats, [6, 16], [64]) == ["gemm_f32_6x16x64"]
    assert named(floats, [16], [3]) == ["gemv_f32_16x3"]
    assert named(floats, [16], []) == []
    assert named(floats, [64, 64], [8]) == []
    assert named(("int32", "uint8", "int8"), [16], [5, 4]) == ["dot4_u8s8_16x5"]
    assert named(("int32", "int8", "int8"), [16], [4]) == ["dot4_s8s8_16x1"]
    assert named(("int32", "int8", "int8"), [16], [3]) == []
    for family in FAMILIES.values():
        assert family.name in FAMILIES


def test_each_emitter_is_declared_by_the_targets_of_its_language():
    emitters, of_vta = set(intrinsics.REGISTRY), resolve("vta-pynq").emits
    single = {f.emitter for f in FAMILIES.values() if f.threads == 1}
    assert single == emitters | of_vta
    assert {f.emitter for f in FAMILIES.values()} == single | set(of_gpus.REGISTRY)
    assert set(INSTRUCTIONS) == set(of_gpus.REGISTRY)
    assert {"vectors", "prefetch"} | emitters == LLVM_EMITS


@pytest.mark.parametrize(
    ("target", "tile"), [("x86-64-avx2", (6, 16)), ("x86-64-avx512", (14, 32))]
)
def test_the_tile_of_a_target(target, tile):
    assert te.gemm_tile(resolve(target)) == tile
