"""relax and union: the span covers every index, and is tight where schedules need it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlcompiler.arith import Affine, Analyzer, Interval, Span, relax, union
from dlcompiler.ir import Var
from dlcompiler.ir.expr import binary
from tests.arith.index_expressions import (
    VARIABLES,
    expressions,
    points,
    ranges,
    split_like,
    value_of,
)

moving_variables = st.sets(st.sampled_from(VARIABLES))


@given(expressions(), ranges(), moving_variables)
def test_relax_covers_every_index(expr, domain, moving):
    check_cover(expr, domain, moving)


@given(split_like(), ranges(), moving_variables)
def test_relax_covers_every_index_of_what_schedules_make(expr, domain, moving):
    check_cover(expr, domain, moving)


def check_cover(expr, domain, moving):
    span = relax(expr, moving, Analyzer(domain))
    if span is None:
        return
    for point in points(domain):
        first = value_of(span.first.to_expr(), point)
        assert first <= value_of(expr, point) < first + span.extent, f"{expr}: {span} at {point}"


@given(expressions(), ranges(), moving_variables)
def test_the_start_stands_while_the_variables_move(expr, domain, moving):
    span = relax(expr, moving, Analyzer(domain))
    if span is not None:
        starts = {}
        for point in points(domain):
            standing = tuple(value for var, value in point.items() if var not in moving)
            start = value_of(span.first.to_expr(), point)
            assert starts.setdefault(standing, start) == start


@given(expressions(4), expressions(4), ranges(), moving_variables)
def test_union_covers_both(a, b, domain, moving):
    analyzer = Analyzer(domain)
    spans = [relax(expr, moving, analyzer) for expr in (a, b)]
    joined = None if None in spans else union(*spans, analyzer)
    if joined is None:
        return
    for point in points(domain):
        first = value_of(joined.first.to_expr(), point)
        for span in spans:
            start = value_of(span.first.to_expr(), point)
            assert first <= start
            assert start + span.extent <= first + joined.extent


i, j, k = VARIABLES
RANGES = {i: Interval(0, 15), j: Interval(0, 3), k: Interval(0, 2)}


def shown(span):
    return f"{span.first.to_expr()} : +{span.extent}"


@pytest.mark.parametrize(
    ("expr", "moving", "expected"),
    [
        (i * 4 + j, {j}, "i*4 : +4"),
        (i + k - 1, {k}, "i - 1 : +3"),
        (i * 2 + k, {k}, "i*2 : +3"),
        (i * 2 + k, {i, k}, "0 : +33"),
        (15 - i, {i}, "0 : +16"),
        (i - j, {j}, "i - 3 : +4"),
        ((i * 4 + j) // 2, {j}, "i*2 : +2"),
        ((i + j) // 2, {j}, "i // 2 : +3"),
        ((i * 4 + j) // 8, {j}, "i // 2 : +1"),
        ((i * 4 + j) % 4, {j}, "0 : +4"),
        ((i * 4 + j) % 8, {j}, "i % 2*4 : +4"),
        ((i * 3 + j) % 8, {j}, "0 : +8"),
        ((i * 8 + j) % 8, {j}, "0 : +4"),
        (i, {j}, "i : +1"),
        (binary("min", i + j, 12), {j}, "min(i, 12) : +4"),
        (binary("max", i + j, 5), {j}, "max(i, 5) : +4"),
    ],
)
def test_spans_that_must_be_found(expr, moving, expected):
    span = relax(expr, moving, Analyzer(RANGES))
    assert shown(span) == expected


def test_a_stencil_is_one_span():
    analyzer = Analyzer(RANGES)
    left, right = (relax(i + j + d, {j}, analyzer) for d in (-1, 1))
    assert shown(union(left, right, analyzer)) == "i - 1 : +6"


def test_an_unbounded_variable_has_no_span():
    assert relax(Var("n") * 2, {i}, Analyzer({})) is not None
    n = Var("n")
    assert relax(n * 2, {n}, Analyzer({})) is None


def test_spans_of_unknown_distance_have_no_union():
    n = Var("n")
    analyzer = Analyzer(RANGES)
    a, b = Span(Affine.of_atom(n), 2), Span(Affine.of_constant(0), 2)
    assert union(a, b, analyzer) is None
    assert union(a, a, analyzer).extent == 2
