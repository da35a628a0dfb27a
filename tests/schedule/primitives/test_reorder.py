"""reorder: the nests it makes, and what it refuses."""


def test_a_reduction_outside_initialises_first(matmul, nest, golden):
    matmul.s[matmul.C].reorder(matmul.k, matmul.i, matmul.j)
    golden("reduction_outermost", nest(matmul))


def test_a_reduction_between_data_loops(matmul, nest, golden):
    matmul.s[matmul.C].reorder(matmul.k, matmul.j)
    golden("reduction_between", nest(matmul))


def test_loops_that_are_not_given_stay(matmul):
    _, inner = matmul.s[matmul.C].split(matmul.i, 2)
    matmul.s[matmul.C].reorder(matmul.k, inner)
    names = [axis.name for axis in matmul.s[matmul.C].leaf_iter_vars]
    assert names == ["i.outer", "k", "j", "i.inner"]


def test_a_list_is_taken(matmul):
    matmul.s[matmul.C].reorder([matmul.j, matmul.i])
    assert [axis.name for axis in matmul.s[matmul.C].leaf_iter_vars] == ["j", "i", "k"]


def test_annotated_loops_move_with_their_kind(matmul, nest, golden):
    matmul.s[matmul.C].vectorize(matmul.j)
    matmul.s[matmul.C].reorder(matmul.k, matmul.j)
    golden("keeps_kinds", nest(matmul))


def test_refuses_one_loop_twice(matmul, refusal):
    assert refusal(matmul.s[matmul.C].reorder, matmul.i, matmul.k, matmul.i) == (
        "reorder C (i, k, i): each axis may be given once\n  got       i, k, i"
    )


def test_one_loop_and_none_stay_where_they_are(matmul):
    before = matmul.s.state.stage("C").leaves
    matmul.s[matmul.C].reorder(matmul.i)
    matmul.s[matmul.C].reorder()
    assert matmul.s.state.stage("C").leaves == before


def test_refuses_what_is_not_an_axis(matmul, refusal):
    assert refusal(matmul.s[matmul.C].reorder, 1, 2) == (
        "reorder C: not an axis\n  got       1 (int)\n  hint      pass one of s[C].leaf_iter_vars"
    )


def test_refuses_an_axis_that_was_split(matmul, refusal):
    matmul.s[matmul.C].split(matmul.i, 2)
    assert refusal(matmul.s[matmul.C].reorder, matmul.j, matmul.i) == (
        "reorder C (j, i): it was split into i.outer and i.inner\n"
        "  got       axis i of stage C\n"
        "  hint      the loops are now: i.outer, i.inner, j, k"
    )


def test_an_order_that_breaks_an_attachment_is_owed(chain):
    outer, inner = chain.s[chain.D].split(chain.D.op.axis[0], 4)
    chain.s[chain.Q].compute_at(chain.s[chain.D], outer)
    chain.s[chain.P].compute_at(chain.s[chain.D], outer)
    chain.s[chain.Q].compute_at(chain.s[chain.D], inner)
    chain.s[chain.P].compute_at(chain.s[chain.D], inner)
    chain.s[chain.Q].compute_at(chain.s[chain.D], inner)
    chain.s[chain.P].compute_at(chain.s[chain.D], outer)
    assert chain.s.can("reorder", inner, outer).obligation == (
        "P is computed at D.i.outer, and its reader Q is not there yet "
        "(attached by: compute_at P D i.outer)"
    )


def test_an_attached_stage_stays_outside_a_vectorized_loop(chain, computes):
    outer, inner = chain.s[chain.D].split(chain.D.op.axis[0], 4)
    chain.s[chain.Q].compute_at(chain.s[chain.D], outer)
    chain.s[chain.D].vectorize(inner)
    chain.s[chain.D].reorder(inner, outer)
    assert chain.s.obligations[0].is_settled
    computes(chain.s)


def test_refuses_to_bring_a_parallel_loop_into_a_vectorized_one(matmul, refusal):
    matmul.s[matmul.C].parallel(matmul.i)
    matmul.s[matmul.C].vectorize(matmul.j)
    assert refusal(matmul.s[matmul.C].reorder, matmul.j, matmul.i) == (
        "reorder C (j, i): a parallel loop cannot stand inside a vectorized one\n"
        "  got       C.i inside C.j"
    )
