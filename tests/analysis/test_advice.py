"""Each rule of advice finds something in one schedule, and nothing in another."""

from dataclasses import replace

import pytest

from dlcompiler import te
from dlcompiler.analysis.advice import RULES, advise
from dlcompiler.analysis.footprint import ProgramFootprint
from dlcompiler.pipeline import lower
from dlcompiler.pipeline.checks import default_args
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.trace import decode
from dlcompiler.target.presets import C99, RISCV64, X86_64_AVX2, cpu_target

MACHINE = replace(X86_64_AVX2, cores=8)
WITHOUT_VECTORS = {
    "C": C99,
    "emits no vectors": replace(X86_64_AVX2, emits=frozenset()),
    "RISC-V without V": cpu_target("rv64", RISCV64.triple, RISCV64.cpu, ("+m", "+a", "+f", "+d")),
}


def advice(schedule, rule, target=MACHINE):
    """Return the findings of a rule, after applying each suggested step to a fork."""
    assert rule in {each.name for each in RULES}
    func = lower(schedule, default_args(schedule), simple_mode=True)
    found = advise(schedule, ProgramFootprint(func), target)
    for item in found:
        step = item.finding.step
        if step is not None:
            there = schedule.fork("tried")
            there.apply(step.primitive, step.stage, decode(there.state, step))
            assert not there.obligations
    return [item.finding for item in found if item.rule == rule]


def only(schedule, rule, target=MACHINE):
    (finding,) = advice(schedule, rule, target)
    return finding


def matmul(n=128, m=None, dtype="float32"):
    m = m or n
    A, B = te.placeholder((n, n), dtype, name="A"), te.placeholder((n, m), dtype, name="B")
    k = te.reduce_axis((0, n), name="k")
    return te.compute((n, m), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")


def tiled(C, x, y, vectorize=True):
    s = create_schedule(C.op)
    io, jo, ii, ji = s[C].tile(*C.op.axis, x, y)
    s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
    if vectorize:
        s[C].vectorize(ji)
    return s


def elementwise(shape, dtype="float32"):
    A = te.placeholder(shape, dtype, name="A")
    return te.compute(shape, lambda *at: A[at] * 2.0, name="B")


def test_there_are_enough_rules_with_sources():
    assert len({rule.name for rule in RULES}) == len(RULES) >= 12
    assert all(len(rule.source) > 20 for rule in RULES)


def test_advice_on_the_first_and_the_other_updates_is_given_once():
    s = tiled(matmul(), 16, 8)
    found = advice(s, "vector tail waste", replace(MACHINE, vector_bits=512))
    assert len({finding.text for finding in found}) == len(found) == 1


class TestStride:
    rule = "stride-one axis not innermost"

    def test_fires(self):
        finding = only(create_schedule(matmul().op), self.rule)
        assert (finding.stage, finding.path) == ("C", "k")
        assert (
            "elements of B that are 128 apart, so that an iteration loads 1.1 cache lines"
            in finding.text
        )
        assert str(finding.step) == "reorder C (k, j)"

    def test_is_silent(self):
        assert not advice(tiled(matmul(), 16, 16), self.rule)

    def test_is_silent_where_no_order_is_better(self):
        A = te.placeholder((64, 64), name="A")
        B = te.compute((64, 64), lambda i, j: A[j, i] * 2.0, name="B")
        assert not advice(create_schedule(B.op), self.rule)


class TestTile:
    rule = "tile larger than a cache"

    def test_fires(self):
        finding = only(tiled(matmul(1024), 512, 512), self.rule)
        assert finding.path == "k"
        assert "the same 1,024 KiB of C, which do not fit the cache (L2 256 KiB)" in finding.text
        assert str(finding.step) == "split C i.inner 32"

    def test_sizes_have_their_unit(self):
        texts = [each.text for each in advice(create_schedule(matmul(1 << 20).op), self.rule)]
        assert any("the same 4,096 GiB of B" in text for text in texts)

    def test_goes_on_with_what_was_split(self):
        C = matmul(1024)
        s = tiled(C, 512, 512, vectorize=False)
        s[C].split(s[C].leaf_iter_vars[3], factor=32)
        assert str(only(s, self.rule).step) == "reorder C (i.inner.outer, k)"

    def test_a_plain_product_is_tiled(self):
        assert str(only(create_schedule(matmul(1024).op), self.rule).step) == "tile C i j 32 32"

    def test_is_silent(self):
        assert not advice(tiled(matmul(1024), 32, 32), self.rule)


class TestSets:
    rule = "power-of-two stride"

    def test_fires(self):
        finding = only(create_schedule(matmul(512).op), self.rule)
        assert (
            finding.path,
            "512 cache lines of B that are 2,048 bytes apart" in finding.text,
        ) == (
            "k",
            True,
        )
        assert str(finding.step) == "cache_read B global (C)"

    def test_fires_for_a_copy(self):
        A = te.placeholder((256, 1024), name="A")
        B = te.compute((1024, 256), lambda i, j: A[j, i], name="B")
        finding = only(create_schedule(B.op), self.rule)
        assert "256 cache lines of A that are 4,096 bytes apart" in finding.text

    def test_is_silent_for_other_widths(self):
        assert not advice(create_schedule(matmul(512, 520).op), self.rule)


class TestTail:
    rule = "vector tail waste"

    @pytest.mark.parametrize(("extent", "waste"), [(20, "17%"), (12, "25%"), (9, "44%")])
    def test_fires(self, extent, waste):
        B = elementwise((64, extent))
        s = create_schedule(B.op)
        s[B].vectorize(B.op.axis[1])
        finding = only(s, self.rule)
        assert f"of 8 lanes, and {waste} of all lanes" in finding.text

    def test_fires_for_a_guarded_tail(self):
        B = elementwise((64, 20))
        s = create_schedule(B.op)
        _, inner = s[B].split(B.op.axis[1], factor=8)
        s[B].vectorize(inner)
        assert "17% of all lanes" in only(s, self.rule).text

    def test_is_silent_for_guards_of_other_loops(self):
        B = elementwise((63, 16))
        s = create_schedule(B.op)
        s[B].split(B.op.axis[0], factor=8)
        s[B].vectorize(B.op.axis[1])
        assert not advice(s, self.rule)


class TestVectors:
    rule = "innermost data loop not vectorized"

    def test_fires(self):
        finding = only(create_schedule(elementwise((64, 32)).op), self.rule)
        assert "stores 32 adjacent elements one at a time" in finding.text
        assert str(finding.step) == "vectorize B at1"

    def test_splits_what_is_longer_than_vectors(self):
        step = only(create_schedule(elementwise((64, 1000)).op), self.rule).step
        assert str(step) == "split B at1 8"

    def test_is_silent(self):
        B = elementwise((64, 32))
        s = create_schedule(B.op)
        s[B].vectorize(B.op.axis[1])
        assert not advice(s, self.rule)
        assert not advice(create_schedule(elementwise((64, 4)).op), self.rule)


@pytest.mark.parametrize("target", WITHOUT_VECTORS.values(), ids=WITHOUT_VECTORS)
def test_no_advice_on_vectors_for_targets_without_them(target):
    B = elementwise((64, 20))
    assert not advice(create_schedule(B.op), TestVectors.rule, target)
    s = create_schedule(B.op)
    s[B].vectorize(B.op.axis[1])
    assert not advice(s, TestTail.rule, target)


class TestRegisters:
    rule = "register pressure"

    def product(self, rows):
        C = matmul(64)
        s = create_schedule(C.op)
        io, jo, ii, ji = s[C].tile(*C.op.axis, rows, 16)
        s[C].reorder(io, jo, *C.op.reduce_axis, ii, ji)
        s[C].vectorize(ji)
        s[C].unroll(ii)
        return s

    def test_fires(self):
        finding = only(self.product(8), self.rule)
        assert (finding.path, finding.step) == ("k", None)
        assert "adds to 16 vectors of C" in finding.text
        assert "it needs 18 registers, and the target has 16" in finding.text

    def test_is_silent(self):
        assert not advice(self.product(4), self.rule)

    def test_counts_elements_where_the_target_has_no_vectors(self):
        finding = only(self.product(8), self.rule, WITHOUT_VECTORS["RISC-V without V"])
        assert "adds to 128 elements of C: with 2 for its operands it needs 130" in finding.text

    def test_is_silent_where_another_compiler_assigns_registers(self):
        assert not advice(self.product(8), self.rule, C99)


class TestParallelWork:
    rule = "too little parallel work"

    def test_fires_without_a_parallel_loop(self):
        finding = only(create_schedule(matmul().op), self.rule)
        assert "100% of the operations are in i, which runs on 1 of 8 cores" in finding.text
        assert str(finding.step) == "parallel C i"

    @pytest.mark.parametrize(("factor", "share"), [(32, "50%"), (14, "62%")])
    def test_fires_for_few_iterations(self, factor, share):
        C = matmul()
        s = create_schedule(C.op)
        outer, _ = s[C].split(C.op.axis[0], factor=factor)
        s[C].parallel(outer)
        assert f"are busy {share} of the time" in only(s, self.rule).text

    def test_is_silent(self):
        C = matmul()
        s = create_schedule(C.op)
        s[C].parallel(C.op.axis[0])
        assert not advice(s, self.rule)
        assert not advice(create_schedule(matmul(16).op), self.rule)
        assert not advice(create_schedule(matmul().op), self.rule, X86_64_AVX2)


class TestRegions:
    rule = "short parallel regions"

    def test_fires(self):
        B = elementwise((256, 64))
        s = create_schedule(B.op)
        s[B].parallel(B.op.axis[1])
        finding = only(s, self.rule)
        assert "starts 256 parallel regions of 64 operations each" in finding.text

    def test_is_silent(self):
        B = elementwise((256, 64))
        s = create_schedule(B.op)
        s[B].parallel(B.op.axis[0])
        assert not advice(s, self.rule)


class TestSharing:
    rule = "false sharing"

    def test_fires(self):
        B = elementwise((4096,))
        s = create_schedule(B.op)
        s[B].parallel(B.op.axis[0])
        finding = only(s, self.rule)
        assert "write to B 4 bytes apart" in finding.text

    def test_is_silent(self):
        B = elementwise((4096,))
        s = create_schedule(B.op)
        outer, _ = s[B].split(B.op.axis[0], factor=16)
        s[B].parallel(outer)
        assert not advice(s, self.rule)


class TestRecomputation:
    rule = "recomputation"

    def blurred(self):
        A = te.placeholder((66,), name="A")
        B = te.compute((66,), lambda i: A[i] * 2.0, name="B")
        C = te.compute((64,), lambda i: B[i] + B[i + 1] + B[i + 2], name="C")
        s = create_schedule(C.op)
        return s, B, C

    def test_fires(self):
        s, B, C = self.blurred()
        s[B].compute_at(s[C], C.op.axis[0])
        finding = only(s, self.rule)
        text = "B is computed 2.9× as often as needed, in 192 steps where 66 suffice"
        assert text in finding.text
        assert str(finding.step) == "compute_root B"

    def test_goes_one_loop_out(self):
        s, B, C = self.blurred()
        outer, inner = s[C].split(C.op.axis[0], factor=16)
        s[B].compute_at(s[C], inner)
        assert str(only(s, self.rule).step) == "compute_at B C i.outer"
        s[B].compute_at(s[C], outer)
        assert not advice(s, self.rule)


class TestChain:
    rule = "reduction with a single sum"

    def test_fires(self):
        finding = only(create_schedule(matmul().op), self.rule)
        assert "each of 128 steps of k adds" in finding.text
        assert str(finding.step) == "reorder C (k, j)"

    def test_only_a_sum_adds(self):
        A = te.placeholder((8, 32), name="A")
        k = te.reduce_axis((0, 32), name="k")
        M = te.compute((8,), lambda i: te.max(A[i, k], axis=k), name="M")
        text = only(create_schedule(M.op), self.rule).text
        assert "each of 32 steps of k updates the same element" in text
        assert "add" not in text
        assert "sum" not in text

    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_a_loop_of_one_iteration_is_no_data_loop(self, shape):
        A = te.placeholder((8, 8), name="A")
        a, b = te.reduce_axis((0, 8), name="a"), te.reduce_axis((0, 8), name="b")
        B = te.compute(shape, lambda *_: te.sum(A[a, b], axis=[a, b]), name="B")
        finding = only(create_schedule(B.op), self.rule)
        assert "each of 64 steps of a, b" in finding.text
        assert "move a data loop" not in finding.text
        assert "rfactor" in finding.text
        assert str(finding.step) == "rfactor B b 0"

    def test_one_loop_is_split_before_it_has_partial_results(self):
        A = te.placeholder((64,), name="A")
        k = te.reduce_axis((0, 64), name="k")
        B = te.compute((), lambda: te.sum(A[k], axis=k), name="B")
        assert str(only(create_schedule(B.op), self.rule).step) == "split B k 8"

    def test_counts_all_loops_of_the_reduction(self):
        X = te.placeholder((64, 20, 20), name="X")
        c, y = te.reduce_axis((0, 4), name="c"), te.reduce_axis((0, 3), name="y")
        Y = te.compute((64, 18), lambda i, j: te.sum(X[i, j + y, c], axis=[c, y]), name="Y")
        assert "each of 12 steps of c, y adds" in only(create_schedule(Y.op), self.rule).text

    def test_is_silent(self):
        assert not advice(tiled(matmul(), 16, 16), self.rule)
        assert not advice(create_schedule(matmul(dtype="int32").op), self.rule)


class TestCondition:
    rule = "condition in an inner loop"

    def convolution(self):
        X = te.placeholder((64,), name="X")
        W = te.placeholder((9,), name="W")
        P = te.compute(
            (72,),
            lambda i: te.if_then_else(te.all(i >= 4, i < 68), X[i - 4], 0.0),
            name="P",
        )
        r = te.reduce_axis((0, 9), name="r")
        Y = te.compute((64,), lambda i: te.sum(P[i + r] * W[r], axis=r), name="Y")
        return create_schedule(Y.op), P

    def test_fires(self):
        s, P = self.convolution()
        s[P].compute_inline()
        finding = only(s, self.rule)
        assert "each of 576 iterations of r evaluates a condition" in finding.text
        assert str(finding.step) == "compute_root P"

    def test_is_silent(self):
        s, _ = self.convolution()
        assert not advice(s, self.rule)

    def test_a_condition_on_data_is_no_padding(self):
        A = te.placeholder((8, 64), name="A")
        k = te.reduce_axis((0, 64), name="k")
        best, _ = te.compute((8,), lambda i: te.argmax(A[i, k], k), name="T")
        assert not advice(create_schedule(best.op), self.rule)


def test_no_advice_on_loops_that_an_intrinsic_has_replaced():
    rule = "innermost data loop not vectorized"
    s = tiled(matmul(96), 6, 16, vectorize=False)
    C = s.outputs[0]
    assert advice(s, rule)
    s[C].tensorize(s[C].leaf_iter_vars[2], "gemm_f32_6x16x96")
    assert not advice(s, rule)
