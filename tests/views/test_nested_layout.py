"""The layout of graphs in frames: nothing overlaps, frames hold what is theirs, edges lead down."""

import itertools
import random

import pytest

from dlcompiler.views.graphs.coordinates import Segment, middles
from dlcompiler.views.graphs.crossings import crossings, ordered
from dlcompiler.views.graphs.nested import Frame, Leaf, arranged
from tests.share import cases_of


def leaf(key):
    return Leaf(key, 60 + 10 * len(key), 30)


def overlap(a, b):
    return (
        a.x < b.x + b.w - 0.1 and b.x < a.x + a.w - 0.1
        and a.y < b.y + b.h - 0.1 and b.y < a.y + a.h - 0.1
    )  # fmt: skip


def inside(a, b):
    return (
        a.x >= b.x - 0.1 and a.y >= b.y - 0.1
        and a.x + a.w <= b.x + b.w + 0.1 and a.y + a.h <= b.y + b.h + 0.1
    )  # fmt: skip


def random_graph(seed):
    """Return a frame with frames of intervals of a random graph, and its edges."""
    r = random.Random(seed)
    count = r.randint(1, 40)
    edges = sorted(
        {
            (f"{a}", f"{b}")
            for b in range(1, count)
            for a in r.sample(range(b), min(b, r.randint(0, 3)))
        }
    )
    parts, at = [], 0
    while at < count:
        size = min(r.choice([1, 1, 2, 4, 7]), count - at)
        leaves = tuple(leaf(f"{n}") for n in range(at, at + size))
        parts += [Frame(f"frame {at}", leaves, 20)] if size > 1 else leaves
        at += size
    half = len(parts) // 2
    if r.random() < 0.5 and half > 1:
        parts = [Frame("block", tuple(parts[:half]), 20), *parts[half:]]
    return Frame("", tuple(parts)), edges


def frames_of(frame):
    for child in frame.children:
        if isinstance(child, Frame):
            yield child
            yield from frames_of(child)


@pytest.mark.parametrize("seed", cases_of(range(60)))
def test_random_graphs(seed):
    root, edges = random_graph(seed)
    made = arranged(root, edges)
    leaves = {key: box for key, box in made.boxes.items() if key.isdecimal()}
    assert not any(overlap(a, b) for a, b in itertools.combinations(leaves.values(), 2))
    for frame in frames_of(root):
        box = made.boxes[frame.key]
        own = {child.key for child in frame.children}
        assert all(inside(made.boxes[key], box) for key in own)
        within = own | {c.key for f in frames_of(frame) for c in f.children}
        assert not any(overlap(b, box) for key, b in leaves.items() if key not in within)
    assert set(made.ways) == set(edges)
    for (a, b), way in made.ways.items():
        heights = [y for _, top, bottom in way for y in (top, bottom)]
        assert heights == sorted(heights), "an edge leads down"
        assert heights[0] == pytest.approx(made.boxes[a].y + made.boxes[a].h)
        assert heights[-1] == pytest.approx(made.boxes[b].y)
        # Vertical pieces pass no box but those at their ends.
        for x, top, bottom in way:
            for key, box in leaves.items():
                if key not in (a, b) and bottom - top > 1:
                    assert not (
                        box.x + 0.5 < x < box.x + box.w - 0.5
                        and top < box.y + box.h - 0.5 and box.y + 0.5 < bottom
                    ), (a, b, key)  # fmt: skip
    assert all(box.x >= 0 and box.x + box.w <= made.width + 0.1 for box in leaves.values())
    assert arranged(root, edges) == made, "the same each time"


def test_a_chain_is_straight():
    made = arranged(Frame("", tuple(map(leaf, "abc"))), [("a", "b"), ("b", "c")])
    assert len({box.x + box.w / 2 for box in made.boxes.values()}) == 1


def test_an_empty_frame():
    made = arranged(Frame("", (), pad=6), [])
    assert (made.width, made.height, made.boxes) == (12, 12, {})


def test_a_cycle_is_refused():
    with pytest.raises(ValueError, match="the graph has a cycle"):
        arranged(Frame("", (leaf("a"), leaf("b"))), [("a", "b"), ("b", "a")])


def test_long_edges_of_one_value_share_their_lane():
    edges = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "c"), ("a", "d")]
    ways = arranged(Frame("", tuple(map(leaf, "abcd"))), edges).ways
    assert ways["a", "d"][1] == ways["a", "c"][1]
    assert len(ways["a", "d"]) == 4


def test_crossings_are_counted_as_by_all_pairs():
    r = random.Random(1)
    upper, lower = [("u", n) for n in range(8)], [("l", n) for n in range(8)]
    below = {u: r.sample(lower, 3) for u in upper}
    pairs = [(u[1], v[1]) for u in upper for v in below[u]]
    expected = sum((a - c) * (b - d) < 0 for (a, b), (c, d) in itertools.combinations(pairs, 2))
    assert crossings([upper, lower], below) == expected
    assert (
        crossings(ordered([upper, lower], [(u, v) for u in upper for v in below[u]]), below)
        < expected
    )


def test_places_keep_their_order_and_distance():
    layers = [["a"], ["b", "c", "d"]]
    widths = dict.fromkeys("abcd", 10.0)
    at = middles(layers, widths, [Segment("a", x) for x in "bcd"], gap=4)
    assert [at["b"], at["c"], at["d"]] == [5, 19, 33]
    assert at["a"] == 19
