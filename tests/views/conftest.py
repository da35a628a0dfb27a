"""Schedules to look at, and a reader of fragments."""

import xml.etree.ElementTree as ET

import pytest

from dlcompiler import te
from dlcompiler.schedule import create_schedule


@pytest.fixture
def tensors():
    n = 64
    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    return A, B, C


@pytest.fixture
def plain(tensors):
    return create_schedule(tensors[2].op)


@pytest.fixture
def blocked(tensors):
    """A matmul with a cached block: two stages, one inside the other."""
    C = tensors[2]
    s = create_schedule(C.op)
    cached = s.cache_write(C, "local")
    _, jo, _, ji = s[C].tile(*C.op.axis, 16, 16)
    s[cached].compute_at(s[C], jo)
    ko, ki = s[cached].split(s[cached].op.reduce_axis[0], 4)
    i, j = s[cached].op.axis
    s[cached].reorder(ko, i, ki, j)
    s[cached].vectorize(j)
    s[C].vectorize(ji)
    return s


@pytest.fixture
def parsed():
    """Read a fragment as XML, after checks that hold for every fragment."""

    def read(fragment):
        root = ET.fromstring(fragment)
        assert not list(root.iter("script"))
        for element in root.iter():
            assert "id" not in element.attrib, "ids clash when a fragment is shown twice"
            assert not any(name.lower().startswith("on") for name in element.attrib)
        return root

    return read
