"""A schedule written as data and read back, and what is refused on the way."""

import base64
import contextlib
import json
import random
import zlib

import pytest

from dlcompiler import te
from dlcompiler.errors import ScheduleError, UserError
from dlcompiler.ir import structural_equal
from dlcompiler.pipeline import lower
from dlcompiler.schedule import create_schedule
from dlcompiler.schedule.saved.document import (
    MAX_BYTES,
    Saved,
    from_data,
    from_json,
    from_link,
    to_data,
    to_json,
    to_link,
)
from tests.fuzz.checks import LIMITS, case_of
from tests.fuzz.recurrences import TEMPLATES as RECURRENCES

HOSTILE = "</script><img src=x onerror=alert(1)>"


@pytest.fixture
def saved(matmul):
    s, C = matmul.s, matmul.C
    s[C].split(matmul.j, 2)
    s.describe("narrow")
    s.undo()
    s[C].tile(matmul.i, matmul.j, 2, 3)
    s.node.notes["measured"] = "1 ms"
    s.describe("tiled", HOSTILE)
    return Saved(s, tuple(matmul.args), "x86-64-avx2", "matmul")


def link_of(text):
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(text) + packer.flush()
    return "#s=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def test_json_holds_the_whole_history(saved):
    read = from_json(to_json(saved))
    assert (read.name, read.target) == ("matmul", "x86-64-avx2")
    assert [node.id for node in read.schedule.history.history.walk()] == [
        node.id for node in saved.schedule.history.history.walk()
    ]
    assert read.schedule.node.id == saved.schedule.node.id
    assert (read.schedule.node.name, read.schedule.node.note) == ("tiled", HOSTILE)
    assert read.schedule.node.notes == {}, "what was measured elsewhere is not known here"
    assert to_data(saved)["states"][2]["known"] == {"measured": "1 ms"}
    read.schedule.jump("narrow")
    assert read.schedule.node.title() == "split C j 2"


def test_a_link_holds_the_way_to_the_state(saved):
    link = to_link(saved)
    assert link.startswith("#s=")
    assert link[3:].replace("-", "").replace("_", "").isalnum()
    read = from_link(f"https://example.org/replay.html{link}")
    assert [node.title() for node in read.schedule.history.history.walk()] == [
        "create",
        "tile C i j 2 3",
    ]
    assert read.schedule.node.name == "tiled"


def test_names_that_notation_cannot_have():
    A = te.placeholder((8, 8), name="A.x")
    B = te.compute((8, 8), lambda i, j: A[i, j] + 1, name="B.x")
    k, k2 = te.reduce_axis((0, 4), name="k"), te.reduce_axis((0, 8), name="k")
    C = te.compute((8,), lambda i: te.sum(B[i, k], axis=k), name="C")
    D = te.compute((8,), lambda i: te.sum(B[i, k2] + C[i], axis=k2), name="D")
    s = create_schedule(D.op)
    s[D].split(k2, 2)
    copy = s.cache_read(B, "local", [D])
    s[copy].compute_at(s[D], D.op.axis[0])
    read = from_link(to_link(Saved(s, (A, D))))
    assert structural_equal(lower(read.schedule, read.args).body, lower(s, [A, D]).body)
    assert read.schedule.trace.steps[0].args["axis"] == "k_1"


@pytest.mark.parametrize("seed", range(24))
def test_random_schedules_survive(seed):
    case = case_of(seed)
    if case.expression.template in RECURRENCES:
        pytest.skip("a recurrence has no text that is read back")
    schedule, args = case.schedule(), case.expression.args
    has_reducer = any(map(callable, te.notation_arguments(*case.expression.outputs).values()))
    if has_reducer or not all(isinstance(arg, te.Tensor) for arg in args):
        pytest.skip("it has a reduction of its own, or a number as a parameter")
    try:
        expected = lower(schedule, args, simple_mode=True)
    except ScheduleError as error:
        if not any(limit in str(error) for limit in LIMITS):
            raise
        pytest.skip("too large to be lowered")
    read = from_json(to_json(Saved(schedule, tuple(args))))
    again = lower(read.schedule, read.args, simple_mode=True)
    assert structural_equal(again.body, expected.body), f"seed {seed}\n{case}"


# -- what is refused ------------------------------------------------------------------------------


def test_refuses_a_reduction_of_ones_own():
    mine = te.comm_reducer(lambda x, y: x * y + 1.0, lambda t: te.const(1, t), name="mine")
    A = te.placeholder((4, 4), name="A")
    k = te.reduce_axis((0, 4), name="k")
    B = te.compute((4,), lambda i: mine(A[i, k], axis=k), name="B")
    with pytest.raises(UserError, match="a reduction of the user's own has no text"):
        to_json(Saved(create_schedule(B.op), (A, B)))


@pytest.mark.parametrize(
    "text",
    ["", "https://example.org", "#s=", "#s=!!", "#s=AAAA", "#s=" + "A" * 2_000_000, None, 3],
)
def test_refuses_what_is_no_link(text):
    with pytest.raises(ScheduleError, match="read a link"):
        from_link(text)


def test_refuses_a_link_that_was_cut(saved):
    with pytest.raises(ScheduleError, match="damaged"):
        from_link(to_link(saved)[:-20])


def test_a_link_that_unpacks_to_a_gigabyte_is_not_unpacked():
    packer = zlib.compressobj(9, wbits=-15)
    packed = b"".join(packer.compress(b" " * 10_000_000) for _ in range(20)) + packer.flush()
    link = "#s=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")
    assert len(link) < MAX_BYTES
    with pytest.raises(ScheduleError, match="too long"):
        from_link(link)


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "null", "3", '"x"', "[" * 100_000, "NaN", "9" * 5000, "{}",
        '{"format": "dlcompiler schedule", "version": 1}', "\x00", "x" * (MAX_BYTES + 1),
    ],
)  # fmt: skip
def test_refuses_what_is_no_schedule(text):
    with pytest.raises(ScheduleError, match="read a"):
        from_json(text)
    if 0 < len(text) < MAX_BYTES:
        with pytest.raises(ScheduleError, match="read a"):
            from_link(link_of(text.encode()))


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (["version"], 2),
        (["format"], "another"),
        (["here"], 99),
        (["here"], -1),
        (["name"], None),
        (["program", "text"], "__import__('os').system('true')"),
        (["program", "text"], "C[i] = open('x')"),
        (["program", "text"], "C[i] = "),
        (["program", "outputs"], []),
        (["program", "outputs"], ["nothing"]),
        (["program", "outputs"], [["C"]]),
        (["program", "args"], ["A", 3]),
        (["program", "declarations"], {"A": [[-4, 8], "float32"]}),
        (["program", "declarations"], {"A": [[10**300, 8], "float32"]}),
        (["program", "declarations"], {"A": {"shape": 3}}),
        (["program", "declarations"], {"A": 1.5}),
        (["program", "declarations"], {"A": [[[[[[[[[1]]]]]]]]]}),
        (["program", "declarations"], {"A": [["().__class__", 8], "float32"]}),
        (["states"], []),
        (["states"], [{}, 3]),
        (["states"], [{}] * 2),
        (["states"], [{}] * 3000),
        (["states", 1, "parent"], 5),
        (["states", 1, "parent"], True),
        (["states", 1, "step"], {"primitive": "__init__", "stage": "C", "args": {}}),
        (["states", 1, "step", "args"], {"axis": "i", "factor": "2"}),
        (["states", 1, "step", "args"], {"axis": ["i"], "factor": 2}),
        (["states", 1, "step", "args"], None),
        (["states", 1, "step", "stage"], HOSTILE),
        (["states", 1, "name"], 3),
        (["states", 1, "name"], "x" * 100),
        (["states", 1, "note"], ["x"]),
    ],
)
def test_refuses_data_that_is_malformed(saved, place, value):
    data = to_data(saved)
    *way, last = place
    inner = data
    for part in way:
        inner = inner[part]
    inner[last] = value
    text = json.dumps(data)
    with pytest.raises(UserError):
        from_json(text)


def test_random_damage_is_refused_or_read(saved):
    """Whatever is in the data, reading it ends with a schedule or with a clear error."""
    rng = random.Random(7)
    junk = [None, True, -1, 10**30, 1.5, "", "i", HOSTILE, [], {}, ["i"], {"a": 1}]
    for _ in range(300):
        data = json.loads(to_json(saved))
        for _ in range(rng.randint(1, 3)):
            _damage(rng, data, junk)
        with contextlib.suppress(UserError):
            from_data(data)


def _damage(rng, data, junk):
    inner = data
    while True:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        if not keys:
            return
        key = rng.choice(keys)
        if isinstance(inner[key], dict | list) and inner[key] and rng.random() < 0.8:
            inner = inner[key]
            continue
        inner[key] = rng.choice(junk)
        return


def test_a_changed_link_is_refused_and_an_earlier_one_is_read(saved):
    link = to_link(saved)
    code = link.removeprefix("#s=")
    packed = base64.urlsafe_b64decode(code + "=" * (-len(code) % 4))
    text = zlib.decompressobj(-15).decompress(packed)
    assert from_link(link_of(text)).name == "matmul"  # without a checksum
    other = text.replace(b'"matmul"', b'"matmux"')
    packer = zlib.compressobj(9, wbits=-15)
    changed = packer.compress(other) + packer.flush() + packed[-4:]
    with pytest.raises(ScheduleError, match="its schedule is damaged"):
        from_link("#s=" + base64.urlsafe_b64encode(changed).decode().rstrip("="))
