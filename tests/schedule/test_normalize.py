"""normalize: what lowering would settle, done as steps."""

from dlcompiler import te
from dlcompiler.ir import structural_equal
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule


def test_attaches_where_lowering_would():
    A = te.placeholder((6, 8), name="A")
    P = te.compute((6, 8), lambda i, j: A[i, j] * 2.0, name="P")
    Q = te.compute((6, 8), lambda i, j: P[i, j] + 1.0, name="Q")
    D = te.compute((6, 8), lambda i, j: Q[i, j] + 1.0, name="D")
    s = create_schedule(D.op)
    i, _ = D.op.axis
    s[Q].compute_at(s[D], i)
    s[D].split(i, 3)
    s[P].compute_at(s[Q], Q.op.axis[0])
    s[Q].vectorize(Q.op.axis[0])
    normal = s.normalize()
    assert (len(s.obligations), normal.obligations) == (2, ())
    assert repr(normal.trace).splitlines()[-2:] == [
        "compute_at P D i.inner",
        "compute_at Q D i.inner",
    ]
    first, second = (lower(each, [A, D]) for each in (s, normal))
    assert structural_equal(first.body, second.body)


def test_changes_nothing_when_nothing_is_owed(matmul):
    assert matmul.s.normalize().state is matmul.s.state
