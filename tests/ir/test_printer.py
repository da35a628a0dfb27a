"""The text of the loop IR: the same everywhere, and readable."""

from dlcompiler.ir import (
    Allocate,
    Axis,
    Binary,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Const,
    For,
    If,
    IfThenElse,
    Load,
    Not,
    PrimFunc,
    Ramp,
    Reduce,
    Reducer,
    Select,
    Seq,
    Store,
    Var,
    binary,
    const,
    format_expr,
    index_const,
    logical,
    print_func,
    seq,
)
from dlcompiler.ir.printer import format_store

i, j, k = Var("i"), Var("j"), Var("k")
A = Buffer("A", (64, 64), "float32")
B = Buffer("B", (64, 64), "float32")
C = Buffer("C", (64, 64), "float32")


def _loop(var, extent, body, kind="serial"):
    return For(var, index_const(extent), kind, body)


def _matmul():
    io, ii = Var("i.outer"), Var("i.inner")
    row = io * 16 + ii
    T = Buffer("T", (64,), "float32", scope="local")
    column = (Ramp(index_const(0), index_const(1), 64),)
    update = Binary("add", Load(T, (j,)), Load(A, (row, k)) * Load(B, (k, j)))
    body = seq(
        [
            _loop(j, 64, Store(T, (j,), const(0, "float32"))),
            _loop(k, 64, _loop(j, 64, Store(T, (j,), update), "vectorized")),
            Store(C, (row, *column), Load(T, column)),
        ]
    )
    guarded = If(row < 60, Allocate(T, body), _loop(j, 64, Store(C, (row, j), const(0, "float32"))))
    return PrimFunc(
        "matmul", (A, B, C), (C,), _loop(io, 4, _loop(ii, 16, guarded, "unrolled"), "parallel")
    )


def test_a_function_prints_like_python(golden):
    golden("matmul", str(_matmul()))


def test_each_statement_knows_its_line():
    func = _matmul()
    printed = print_func(func)
    lines = printed.text.splitlines()
    assert lines[printed.line_of[id(func.body)] - 1].strip() == "for i.outer in parallel(4):"
    for number, statement in printed.statement_at.items():
        assert printed.line_of[id(statement)] == number


def test_an_empty_sequence_prints_as_pass():
    assert "    pass" in str(PrimFunc("nothing", (), (), Seq(())))


def test_two_prints_are_the_same():
    assert str(_matmul()) == str(_matmul())


def test_expressions(golden):
    x, y = Load(A, (i, j)), Load(B, (i, j))
    r = Axis("r", 8, "reduce")
    expressions = {
        "precedence": (x + y) * x - (y - x) / y,
        "left and right": x - (y - x) - y,
        "negation": -(x + y) * -x,
        "negative literal": x * const(-2, "float32"),
        "zero minus": const(0, "float32") - x,
        "infinity": binary("max", x, const(float("-inf"), "float32")),
        "not a number": const(float("nan"), "float32"),
        "index": (i * 4 + j) // 3 % 5,
        "conditions": logical("and", logical("or", i < 3, j >= 2), Not(i + 1 != j)),
        "choice": IfThenElse(i < 3, x, const(0, "float32")),
        "select": Select(x < y, x, y),
        "cast": Cast(x, "int8"),
        "call": Call("pow", (x, y), "float32"),
        "truncated": binary("truncdiv", Cast(x, "int32"), const(3, "int32")),
        "ramp": Ramp(i * 8, index_const(1), 8),
        "strided ramp": Load(A, (i, Ramp(j, index_const(4), 8))),
        "broadcast": Broadcast(x, 8),
        "reduce": Reduce(Reducer("sum", "add"), (x,), (r,)),
        "bool": Const(True, "bool"),
        "scalar tensor": Load(Buffer("s", (), "float32"), ()),
    }
    golden("expressions", "\n".join(f"{n:18}{format_expr(e)}" for n, e in expressions.items()))


def test_updates_print_as_such(golden):
    target = (i, j)
    x = Load(A, (i, j))
    old = Load(C, target)
    stores = [
        Store(C, target, Binary("add", old, x)),
        Store(C, target, Binary("max", old, x)),
        Store(C, target, Binary("sub", old, x)),
        Store(C, target, Binary("add", x, old)),
        Store(C, target, Binary("add", Load(C, (j, i)), x)),
    ]
    golden("updates", str(PrimFunc("updates", (A, C), (C,), Seq(tuple(stores)))))


def test_a_huge_expression_prints_as_its_size():
    tower = Load(A, (i, j))
    for _ in range(100):
        tower = tower + tower
    assert str(tower) == "<Binary of over 10**9 nodes>"
    assert format_store(Store(C, (i, j), tower)) == "C[i, j] = <Binary of over 10**9 nodes>"
