"""tile: the nest it makes, and what it refuses."""


def test_rectangles(matmul, nest, golden):
    axes = matmul.s[matmul.C].tile(matmul.i, matmul.j, 2, 3)
    assert [axis.name for axis in axes] == ["i.outer", "j.outer", "i.inner", "j.inner"]
    golden("dividing", nest(matmul))


def test_rectangles_that_do_not_fit(matmul, nest, golden):
    matmul.s[matmul.C].tile(matmul.i, matmul.j, 3, 4)
    golden("not_dividing", nest(matmul))


def test_is_one_step(matmul):
    matmul.s[matmul.C].tile(matmul.i, matmul.j, 2, 3)
    assert str(matmul.s.trace) == "tile C i j 2 3"
    matmul.s.undo()
    assert len(matmul.s.trace) == 0


def test_refuses_a_bad_factor_by_its_name(matmul, refusal):
    assert refusal(matmul.s[matmul.C].tile, matmul.i, matmul.j, 0, 3) == (
        "tile C (i, j): x_factor must be at least 1\n  got       0"
    )
    assert refusal(matmul.s[matmul.C].tile, matmul.i, matmul.j, 2, False) == (
        "tile C (i, j): y_factor must be an integer\n  got       False (bool)"
    )


def test_refuses_one_axis_twice(matmul, refusal):
    assert refusal(matmul.s[matmul.C].tile, matmul.i, matmul.i, 2, 2) == (
        "tile C (i, i): each axis may be given once\n  got       i, i"
    )


def test_refuses_an_axis_that_was_split(matmul, refusal):
    matmul.s[matmul.C].split(matmul.j, 2)
    assert refusal(matmul.s[matmul.C].tile, matmul.i, matmul.j, 2, 2) == (
        "tile C (i, j): it was split into j.outer and j.inner\n"
        "  got       axis j of stage C\n"
        "  hint      the loops are now: i, j.outer, j.inner, k"
    )
