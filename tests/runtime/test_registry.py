"""Functions by name: registered, looked up, refused; and code in files that names them."""

import ctypes

import numpy as np
import pytest

from dlcompiler import te
from dlcompiler.errors import UserError
from dlcompiler.ir import Builder, call_extern, call_packed
from dlcompiler.pipeline import build
from dlcompiler.runtime import object_cache
from dlcompiler.runtime.libraries import load_library, save_library, save_object
from dlcompiler.runtime.registry import (
    get_global_func,
    list_global_func_names,
    register_extern,
    register_func,
    remove_global_func,
)
from dlcompiler.schedule import create_schedule

FLOATS = ctypes.POINTER(ctypes.c_float)


@ctypes.CFUNCTYPE(None, FLOATS, FLOATS, ctypes.c_int64, ctypes.c_float)
def _scale_in_c(a, b, count, factor):
    for n in range(count):
        b[n] = a[n] * factor


register_extern("test.c.scale", _scale_in_c, override=True)


def test_a_name_is_given_once():
    @register_func("test.name")
    def first(a):
        """First."""

    assert get_global_func("test.name") is first
    assert "test.name" in list_global_func_names()
    with pytest.raises(UserError, match=r"register test.name: the name is taken"):
        register_func("test.name", print)
    register_func("test.name", print, override=True)
    assert get_global_func("test.name") is print
    remove_global_func("test.name")
    assert get_global_func("test.name", allow_missing=True) is None
    with pytest.raises(UserError, match="no function of that name is registered"):
        get_global_func("test.name")
    with pytest.raises(UserError, match="no function of that name is registered"):
        remove_global_func("test.name")


def test_a_function_gives_its_own_name():
    @register_func
    def test_own_name(a):
        """Own."""

    assert get_global_func("test_own_name") is test_own_name
    remove_global_func("test_own_name")


@pytest.mark.parametrize("name", ["", "a b", "é", "1a", "a\n", 'a"', 3, "a" * 300])
def test_what_is_no_name(name):
    with pytest.raises(UserError, match="not usable as a name"):
        register_func(name, print)


def test_what_is_no_function():
    with pytest.raises(UserError, match="not a function"):
        register_func("test.number", 3)
    with pytest.raises(UserError, match="not a function of C"):
        register_extern("test.c.number", "malloc")
    with pytest.raises(UserError, match="not a function of C"):
        register_extern("test.c.number", 0)
    with pytest.raises(UserError, match="the name is taken"):
        register_extern("test.c.scale", _scale_in_c)


def _in_c(name, kind="serial"):
    A = te.placeholder((6, 4), name="A")

    def code(ins, outs):
        ib = Builder()
        with ib.for_range(0, 6, kind=kind) as i:
            a, b = ins[0].region((i, 1), (1, 3), "r"), outs[0].region((i, 1), (1, 3), "w")
            ib.emit(call_extern("int32", name, a, b, 3, te.const(2.5, "float32")))
            ib.buffer_ptr(outs[0])[i, 0] = 0.0
        return ib.get()

    return A, te.extern((6, 4), [A], code, name="B")


@pytest.mark.parametrize("kind", ["serial", "parallel"])
def test_a_function_of_c(kind):
    A, B = _in_c("test.c.scale", kind)
    kernel = build(create_schedule(B.op), [A, B])
    a, b = np.random.default_rng(0).random((6, 4), "float32"), np.ones((6, 4), "float32")
    kernel(a, b)
    assert np.array_equal(b[:, 1:], a[:, 1:] * np.float32(2.5))
    assert not b[:, 0].any()


def test_a_function_of_c_that_nobody_registered():
    A, B = _in_c("test.c.missing")
    with pytest.raises(UserError, match=r"(?s)call test.c.missing: no function.*register_extern"):
        build(create_schedule(B.op), [A, B])


@pytest.fixture
def kernel():
    register_func("test.saved", lambda a, b: np.copyto(b, a + 1), override=True)
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda i, o: call_packed("test.saved", *i, *o), name="B")
    return build(create_schedule(B.op), [A, B])


def _check(function):
    a, b = np.arange(4, dtype="float32"), np.zeros(4, "float32")
    function(a, b)
    assert np.array_equal(b, a + 1)


def test_a_file_names_what_the_process_has(kernel, tmp_path):
    path = tmp_path / "kernel.so"
    written = save_library(kernel, path)
    assert written.kind == "container"
    assert "functions that the loading process must register" in written.because
    _check(load_library(path))
    remove_global_func("test.saved")
    with pytest.raises(UserError, match=r"(?s)does not compile here.*call test.saved"):
        load_library(path)


def test_an_object_cannot_name_them(kernel, tmp_path):
    with pytest.raises(UserError, match="as an object: it calls code from outside"):
        save_object(kernel, tmp_path / "kernel.o")


def test_kept_code_is_bound_by_name(tmp_path, monkeypatch):
    monkeypatch.setattr(object_cache, "current", lambda: cache)
    cache = object_cache.ObjectCache(tmp_path / "cache")
    for number in range(2):
        offset = 10 * number
        register_func("test.bound", lambda a, b, n=offset: np.copyto(b, a + n), override=True)
        A = te.placeholder((4,), name="A")
        B = te.extern((4,), [A], lambda i, o: call_packed("test.bound", *i, *o), name="B")
        before = object_cache.counts().hits
        function = build(create_schedule(B.op), [A, B])
        assert object_cache.counts().hits - before == number
        a, b = np.zeros(4, "float32"), np.zeros(4, "float32")
        function(a, b)
        assert np.all(b == offset)


def test_a_poisoned_call_leaves_the_function_as_it_is_for_other_threads():
    seen = []

    def look(a, b):
        seen.append(function._kernel)
        b[:] = a

    register_func("test.look", look, override=True)
    A = te.placeholder((4,), name="A")
    B = te.extern((4,), [A], lambda i, o: call_packed("test.look", *i, *o), name="B")
    function = build(create_schedule(B.op), [A, B])
    plain = function._kernel
    function.call_poisoned(0xFF, np.ones(4, "float32"), np.zeros(4, "float32"))
    assert seen == [plain]
