"""Targets: the registry, presets, and what is detected here."""

import dataclasses
import itertools
import os

import pytest

from dlcompiler import target
from dlcompiler.errors import TargetError
from dlcompiler.target import CacheLevel, detect
from dlcompiler.target.model import Rate
from dlcompiler.target.presets import X86_64_AVX2, X86_64_LEVELS, X86_64_SSE2, cpu_target


@pytest.mark.parametrize("name", target.names())
def test_every_name_resolves_to_a_target_of_that_name(name):
    found = target.resolve(name)
    assert found.name == name
    assert found.device in ("cpu", "gpu", "accelerator")
    assert target.resolve(name) is found
    assert target.resolve(found) is found
    assert hash(found) == hash(dataclasses.replace(found))


@pytest.mark.parametrize("name", [n for n in target.names() if target.resolve(n).device == "gpu"])
def test_a_gpu_tells_its_limits(name):
    found = target.resolve(name)
    has_warps = found.limits["warp_size"] > 1
    warp = ["warp"] if has_warps else []
    assert [scope.name for scope in found.scopes] == ["global", "shared", *warp, "local"]
    assert found.scope("shared").capacity == found.limits["max_shared_bytes"]
    shared_kib = {
        "": 32, "sm_52": 48, "sm_60": 48, "sm_61": 48, "sm_70": 96, "sm_75": 64, "sm_80": 163,
        "sm_86": 99, "sm_89": 99, "sm_90": 227,
    }  # fmt: skip
    assert found.limits["max_shared_bytes"] == shared_kib[found.cpu] * 1024
    assert found.limits["max_threads_per_block"] == (1024 if has_warps else 256)
    assert found.lanes("float32") == 4


def test_an_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(TargetError) as caught:
        target.resolve("x86-64-avx")
    assert str(caught.value) == (
        "resolve a target: no target has this name\n"
        "  got       'x86-64-avx'\n"
        f"  expected  {', '.join(map(repr, target.names()))}\n"
        "  hint      did you mean 'x86-64-avx2'?"
    )


@pytest.mark.parametrize("wrong", [None, 3, [], {}])
def test_what_is_no_name_is_refused(wrong):
    with pytest.raises(TargetError, match="no target has this name"):
        target.resolve(wrong)


@pytest.mark.parametrize(
    ("machine", "dtype", "lanes"),
    [
        (X86_64_AVX2, "float32", 8),
        (X86_64_AVX2, "float32x2", 8),
        (X86_64_AVX2, "int8", 32),
        (X86_64_SSE2, "float64", 2),
        (dataclasses.replace(X86_64_SSE2, vector_bits=32), "float64", 1),
    ],
)
def test_lanes(machine, dtype, lanes):
    assert machine.lanes(dtype) == lanes


@pytest.mark.parametrize(
    ("name", "vectors"),
    [
        ("x86-64-sse2", ("SSE", 128, 16)),
        ("x86-64-sse4", ("SSE", 128, 16)),
        ("x86-64-avx2", ("AVX2", 256, 16)),
        ("x86-64-avx512", ("AVX-512", 512, 32)),
        ("cortex-a53", ("NEON", 128, 32)),
        ("armv7", ("NEON", 128, 16)),
        ("riscv64", ("RVV", 128, 32)),
        ("wasm32", ("SIMD128", 128, 16)),
    ],
)
def test_vectors_follow_from_the_features(name, vectors):
    found = target.resolve(name)
    assert (found.vector_extension, found.vector_bits, found.vector_registers) == vectors


def test_a_processor_without_vectors():
    found = cpu_target("small", "riscv32-unknown-elf", "generic-rv32", ("+m", "-v"))
    assert (found.vector_extension, found.lanes("float32")) == ("none", 2)


def test_a_machine_without_caches_has_none_of_any_size():
    machine = dataclasses.replace(X86_64_AVX2, caches=())
    assert [machine.cache_bytes(level) for level in (0, 1, -1)] == [0, 0, 0]


def test_a_target_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        X86_64_AVX2.cores = 4
    with pytest.raises(TypeError):
        X86_64_AVX2.limits["max_lanes"] = 128


def test_scopes_and_features():
    assert X86_64_AVX2.scope("global").capacity is None
    assert X86_64_AVX2.scope("local").rank > X86_64_AVX2.scope("global").rank
    assert X86_64_AVX2.scope("shared") is None
    assert X86_64_AVX2.has("fma")
    assert not X86_64_SSE2.has("fma")


def test_the_levels_of_x86_64_grow():
    levels = list(X86_64_LEVELS.values())
    for smaller, larger in itertools.pairwise(levels):
        assert set(smaller) < set(larger)


def test_the_machine_is_described_as_it_is():
    host = detect.host()
    assert host.model
    assert host.llvm_cpu
    assert set(host.cores) == os.sched_getaffinity(0)
    assert sorted(core for group in host.core_groups for core in group) == list(host.cores)
    assert 1 <= detect.available_cores() <= len(host.cores)
    assert all(cache.bytes > 0 and cache.line > 0 for cache in host.caches)
    assert not set(host.assumed) - {"caches", "core_groups"}


def write(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")


def test_hardware_threads_of_one_core_are_grouped(tmp_path, monkeypatch):
    monkeypatch.setattr(detect, "_CPUS", tmp_path)
    siblings = {0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}
    write(tmp_path, {f"cpu{n}/topology/thread_siblings_list": text for n, text in siblings.items()})
    assert detect._groups((0, 1, 2, 3)) == ((0, 2), (1, 3))
    assert detect._groups((0, 1)) == ((0,), (1,)), "only cores that this process may use count"


def test_caches_are_read_and_instruction_caches_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(detect, "_CPUS", tmp_path)
    rows = [("1", "Data", "48K"), ("1", "Instruction", "32K"), ("2", "Unified", "1024K")]
    for number, (level, kind, size) in enumerate(rows):
        folder = f"cpu0/cache/index{number}"
        texts = {"level": level, "type": kind, "size": size, "coherency_line_size": "64"}
        write(tmp_path, {f"{folder}/{name}": text for name, text in texts.items()})
        write(tmp_path, {f"{folder}/shared_cpu_list": "0-1,4"})
    assert detect._caches(0) == (
        CacheLevel("L1d", 48 * 1024, 64, 3),
        CacheLevel("L2", 1024 * 1024, 64, 3),
    )
    assert [str(cache) for cache in detect._caches(0)] == ["L1d 48 KiB", "L2 1 MiB"]


@pytest.mark.parametrize(("text", "ways"), [("12", 12), ("0", 768), ("", 8)])
def test_the_ways_of_a_cache_are_read(tmp_path, monkeypatch, text, ways):
    """0 means that a line may be anywhere."""
    monkeypatch.setattr(detect, "_CPUS", tmp_path)
    texts = {"level": "1", "type": "Data", "size": "48K", "coherency_line_size": "64",
             "ways_of_associativity": text}  # fmt: skip
    write(tmp_path, {f"cpu0/cache/index0/{name}": value for name, value in texts.items()})
    assert detect._caches(0) == (CacheLevel("L1d", 48 * 1024, 64, 1, ways),)


def test_what_cannot_be_read_is_not_an_error(tmp_path, monkeypatch):
    monkeypatch.setattr(detect, "_CPUS", tmp_path)
    assert detect._caches(0) is None
    assert detect._groups((0,)) is None


@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_the_limit_of_a_container_is_the_memory(tmp_path, monkeypatch, name):
    monkeypatch.setattr(detect, "_CGROUP", tmp_path)
    whole = detect.available_memory_bytes()
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("max\n")
    assert detect.available_memory_bytes() == whole
    (tmp_path / name).write_text("123456\n")
    assert detect.available_memory_bytes() == 123456


@pytest.mark.parametrize(("quota", "cores"), [(None, 8), (2.0, 2), (0.5, 1), (100.0, 8)])
def test_the_quota_of_a_container_limits_the_cores(quota, cores, monkeypatch):
    monkeypatch.setattr(detect, "_quota", lambda: quota)
    monkeypatch.setattr(detect, "_affinity", lambda: tuple(range(8)))
    assert detect.available_cores() == cores


@pytest.mark.parametrize("entry", [5, None, list, []], ids=repr)
def test_an_entry_that_is_no_target_is_refused(entry, monkeypatch):
    monkeypatch.setitem(target.REGISTRY, "odd", entry)
    with pytest.raises(TargetError, match="the registry has no target under the name 'odd'"):
        target.resolve("odd")


# -- what users register, or describe wrongly ------------------------------------------------------

BROKEN = {
    "nowhere:TARGET": "ModuleNotFoundError: No module named 'nowhere'",
    "dlcompiler.target:NOTHING": "AttributeError: module 'dlcompiler.target' has no",
    "": "ValueError: Empty module name",
    "no colon": "ModuleNotFoundError",
    ":": "ValueError: Empty module name",
    "tests.target.raises_when_imported:X": "ModuleNotFoundError",
}


@pytest.mark.parametrize("place", BROKEN)
def test_an_entry_that_cannot_be_imported_is_refused_with_the_reason(place, monkeypatch):
    monkeypatch.setitem(target.REGISTRY, "mine", place)
    with pytest.raises(TargetError) as caught:
        target.resolve("mine")
    text = str(caught.value)
    assert text.startswith("resolve a target: the target 'mine' cannot be imported\n")
    assert f"  got       {place!r}\n" in text
    assert "  expected  a value, or its place as text: 'package.module:attribute'\n" in text
    assert f"  because   {BROKEN[place]}" in text
    assert {"global", "shared"} <= target.known_scopes()


def fails():
    raise KeyError("no such machine")


def test_a_function_that_fails_is_no_raw_error(monkeypatch):
    monkeypatch.setitem(target.REGISTRY, "mine", fails)
    with pytest.raises(TargetError) as caught:
        target.resolve("mine")
    assert str(caught.value) == (
        "resolve a target: the function of the target 'mine' fails\n"
        "  because   KeyError: 'no such machine'\n"
        "  hint      it is called without arguments"
    )


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("name", None, "str"),
        ("device", 3, "str"),
        ("features", ["+avx"], "tuple[str, ...]"),
        ("features", "+avx", "tuple[str, ...]"),
        ("features", (1,), "tuple[str, ...]"),
        ("vector_bits", "256", "int"),
        ("vector_bits", 256.0, "int"),
        ("cores", True, "int"),
        ("caches", [1], "tuple[CacheLevel, ...]"),
        ("caches", (("L1", 1, 64, 1),), "tuple[CacheLevel, ...]"),
        ("scopes", None, "tuple[MemoryScope, ...]"),
        ("emits", {"vectors"}, "frozenset[str]"),
        ("emits", "vectors", "frozenset[str]"),
        ("limits", {"max_lanes": "64"}, "Mapping[str, int]"),
        ("limits", None, "Mapping[str, int]"),
    ],
)
def test_a_field_of_a_wrong_type_is_refused(field, value, expected):
    with pytest.raises(TargetError) as caught:
        dataclasses.replace(X86_64_AVX2, **{field: value})
    assert str(caught.value) == (
        f"describe a target: the field {field!r} has a wrong type\n"
        f"  got       {value!r} ({type(value).__name__})\n"
        f"  expected  {expected}"
    )


def test_caches_and_scopes_are_checked_too():
    with pytest.raises(TargetError, match="describe a cache level: the field 'bytes'"):
        CacheLevel("L1d", "32 KiB", 64, 1)
    with pytest.raises(TargetError, match="describe a memory scope: the field 'rank'"):
        target.MemoryScope("global", "near", None, 64)


def test_a_machine_has_cores_and_positive_rates():
    with pytest.raises(TargetError) as caught:
        dataclasses.replace(X86_64_AVX2, cores=0)
    assert str(caught.value) == (
        "describe a target: it has no core\n  got       0\n  expected  at least 1"
    )
    with pytest.raises(TargetError, match="describe a rate: it is not positive"):
        Rate(-1.0, "1/clock", "assumed")


def test_an_architecture_decides_limits_and_instructions():
    old = target.resolve("cuda -arch=sm_61")
    assert (old.limits["max_shared_bytes"], old.scope("shared").capacity) == (49_152, 49_152)
    assert {"dot4", "mma", "async copies"} & old.emits == {"dot4"}
    new = target.resolve("cuda -arch=sm_90")
    assert new.limits["max_shared_bytes"] == 227 * 1024
    assert {"dot4", "mma", "async copies"} <= new.emits
    assert new.runs_on == "cuda"
    assert target.resolve("cuda -arch=sm_103").limits["max_shared_bytes"] == 49_152
