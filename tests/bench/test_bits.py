"""The suite of bit-serial products beside int8 and float32, on small layers."""

from dlcompiler.bench import bits
from dlcompiler.bench.works import parse_work


def test_rows_of_small_layers():
    works = {"C": "conv2d:1x8x5x5,8,3,1,1", "bad": "conv2d:1x8x5x5,8,3,1,1,groups=8"}
    said = []
    document = bits.run_suite(said.append, works, rounds=(2, 2))
    assert [row["work"] for row in document["bits"]] == [works["C"]]
    assert list(document["bits"][0]["seconds"])[:2] == ["float32", "int8"]
    assert "times as fast as int8" in said[0]
    assert "no option of its family" in document["failed"]["bad"]


def test_the_layers_are_those_of_the_paper():
    assert [label for label in bits.works() if label[0] == "C"] == [f"C{n}" for n in range(2, 13)]


def test_bit_serial_works_have_packed_weights_only():
    work = parse_work("bitserial_conv2d:1x64x9x9,16,3,1,1,data_bits=2")
    assert (work.rows, work.judged) == (("prepacked",), "prepacked")
    assert work.shapes == {"data": (1, 64, 9, 9), "weight": (16, 64, 3, 3), "out": (1, 16, 9, 9)}
    assert work.flops == 2 * 16 * 81 * 64 * 9
