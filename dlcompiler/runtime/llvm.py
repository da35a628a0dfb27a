"""Compile LLVM IR text to machine code: loaded, as an object file, or as assembly text.

LLVM ends the process on some mistakes (an unknown processor, a call of an undefined symbol). This
module refuses those before it calls LLVM. It generates code once per
parsed module: LLVM may abort when it generates code from the same module twice.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib
import re
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from dlcompiler.errors import InternalError, TargetError
from dlcompiler.runtime import externs, object_cache
from dlcompiler.runtime.object_cache import CompiledObject
from dlcompiler.runtime.options import Options as Options  # re-exported for callers that compile
from dlcompiler.runtime.source import chosen
from dlcompiler.target.detect import host

T = TypeVar("T")


@cache
def _llvm() -> ModuleType:
    """Import llvmlite on first use (0.1 s), ready to generate code for this machine."""
    binding = importlib.import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding


def initialize_all() -> None:
    """Make LLVM ready to generate code for every family of processors that it has."""
    _llvm().initialize_all_targets()
    _llvm().initialize_all_asmprinters()


def version() -> str:
    """Return LLVM's version: ``"22.1.0"``."""
    return ".".join(str(part) for part in _llvm().llvm_version_info)


def compile_ir(text: str, options: Options) -> LoadedModule:
    """Compile a module and load it into this process.

    Parameters
    ----------
    text : str
        LLVM IR. What it declares must be known to `dlcompiler.runtime.externs`.
    options : Options

    Returns
    -------
    LoadedModule

    Raises
    ------
    TargetError
        The options do not fit this machine.
    InternalError
        The text is not valid, or calls an undefined function: generated code never does.
    """
    options.check()
    made = _compiled(text, options)
    imports = externs.resolve(made.imports)
    linked = _link(made.image, imports, made.symbols)
    return LoadedModule(text, options, frozenset(imports), linked)


def compile_object(text: str, options: Options) -> CompiledObject:
    """Compile a module without loading or caching it: most candidates are discarded.

    Raises
    ------
    TargetError
        The options do not fit this machine.
    InternalError
        The text is not valid, or calls what is not there.
    """
    options.check()
    return _compile(text, options)


def load_object(made: CompiledObject, options: Options) -> LoadedModule:
    """Load what `compile_object` made, here or in another process; its `text` is empty.

    Raises
    ------
    InternalError
        LLVM cannot link it.
    """
    imports = externs.resolve(made.imports)
    return LoadedModule("", options, frozenset(imports), _link(made.image, imports, made.symbols))


def _compiled(text: str, options: Options) -> CompiledObject:
    """Return the object of a module, from the cache or compiled now."""
    store = object_cache.current()
    if store is None:
        return _compile(text, options)
    key = object_cache.key([_compiler(), asdict(options)], text)
    found = store.load(key)
    if found is None:
        found = _compile(text, options)
        store.store(key, found)
    return found


def _compile(text: str, options: Options) -> CompiledObject:
    def finish(module: Any, names: _Names) -> CompiledObject:
        image = _machine(options).emit_object(module)
        return CompiledObject(image, names.symbols, names.imports)

    made = _through_passes(text, options, finish)
    object_cache.count_compile()
    return made


@cache
def _compiler() -> list[str]:
    """Return the facts that identify the compiler: LLVM's version, and a digest of this file."""
    try:
        own = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    except OSError:  # in an archive
        own = ""
    return [version(), importlib.import_module("llvmlite").__version__, own]


def emit_object(text: str, options: Options) -> bytes:
    """Return an object for the system's linker.

    Raises
    ------
    TargetError
        The options do not fit this machine.
    InternalError
        The text is not valid.
    """
    options.check()

    def finish(module: Any, _: _Names) -> bytes:
        image: bytes = _machine(options).emit_object(module)
        return image

    return _through_passes(text, options, finish)


def optimize(text: str, options: Options) -> str:
    """Return the LLVM IR text after LLVM's passes."""
    options.check()
    return _through_passes(text, options, lambda module, _: str(module))


def assembly(text: str, options: Options) -> str:
    """Return the assembly text of the module."""
    options.check()

    def finish(module: Any, _: _Names) -> str:
        return str(_machine(options).emit_assembly(module))

    return _through_passes(text, options, finish)


def emit_assembly(text: str, options: Options) -> str:
    """Return the assembly text of the module, for a machine of any family.

    Nothing is checked: LLVM may end the process. `dlcompiler.runtime.cross` calls this elsewhere.
    """

    def finish(module: Any, _: _Names) -> str:
        return str(_machine(options).emit_assembly(module))

    return _through_passes(text, options, finish, is_for_here=False)


@dataclass(frozen=True)
class Emitted:
    """The outputs of a compilation: LLVM IR, assembly text and the object file."""

    llvm_ir: str
    """LLVM IR after LLVM's passes."""
    assembly: str
    """Assembly text."""
    image: bytes
    """The object file."""


def emit_all(text: str, options: Options) -> Emitted:
    """Return LLVM IR, assembly and object of a module, for a machine of any family.

    Nothing is checked: LLVM may end the process. `dlcompiler.runtime.cross` calls this elsewhere.
    """
    optimized = _through_passes(text, options, lambda m, _: str(m), is_for_here=False)
    with _parsed(optimized, options) as module:
        shown = str(_machine(options).emit_assembly(module))
    with _parsed(optimized, options) as module:
        image = _machine(options).emit_object(module)
    return Emitted(optimized, shown, image)


class LLVMTexts:
    """The texts of machine code that LLVM compiled from `text` with `options`."""

    text: str
    """LLVM IR before LLVM's passes."""
    options: Options
    """Options that the module was compiled with."""
    texts = ("llvm", "optimized llvm", "assembly")
    """Names of its texts."""
    is_machine_code = True
    """Whether its functions run here, called by their addresses."""

    def source(self, name: str | None = None) -> str:
        """Return one of its texts; without a name, LLVM IR before LLVM's passes."""
        made = {
            "llvm": lambda: self.text,
            "optimized llvm": lambda: self.optimized_ir,
            "assembly": lambda: self.assembly,
        }
        return chosen(made, name, "machine code")()

    @cached_property
    def optimized_ir(self) -> str:
        """LLVM IR text after LLVM's passes."""
        return optimize(self.text, self.options)

    @cached_property
    def assembly(self) -> str:
        """Assembly text."""
        return assembly(self.text, self.options)


class LoadedModule(LLVMTexts):
    """Machine code in this process; it is unloaded when nothing refers to this object any more.

    Keep a reference to the module while an address is used, as `runtime.function.Function` does.
    """

    def __init__(
        self, text: str, options: Options, imports: frozenset[str], linked: _Linked
    ) -> None:
        self.text = text
        self.options = options
        self.imports = imports
        """External functions that it declares."""
        self._addresses = linked.addresses
        unload = weakref.finalize(self, _unload, linked.jit, linked.tracker)
        # At exit the operating system frees the code: a thread may still be running in it.
        unload.atexit = False

    @property
    def symbols(self) -> tuple[str, ...]:
        """Names of the functions that can be called."""
        return tuple(self._addresses)

    def address(self, symbol: str) -> int:
        """Return the address of a function.

        Raises
        ------
        InternalError
            The module does not define it.
        """
        if symbol not in self._addresses:
            raise InternalError(
                f"look up {symbol}",
                "the module does not define this function",
                expected=", ".join(self._addresses) or "nothing: the module is empty",
            )
        return self._addresses[symbol]

    def entry(self, symbol: str, types: Sequence[Any]) -> Callable[..., object]:
        """Return a callable for operands of these types."""
        return ctypes.CFUNCTYPE(None, *types)(self.address(symbol))

    def __repr__(self) -> str:
        return f"LoadedModule({', '.join(self._addresses)})"


def _unload(jit: Any, tracker: Any) -> None:
    tracker.close()
    jit.close()


@dataclass(frozen=True, slots=True)
class _Linked:
    """Code in memory: llvmlite's objects that own it, and the addresses of its functions."""

    jit: Any
    tracker: Any
    addresses: Mapping[str, int]


def _link(image: bytes, imports: Mapping[str, int], symbols: Iterable[str]) -> _Linked:
    """Load an object into this process.

    LLVM's newer linker places code and constants side by side, so that the small code model always
    reaches; and it refuses an undefined symbol, where MCJIT crashes when it is called. One JIT per
    module costs 0.3 ms and leaves nothing behind.
    """
    binding = _llvm()
    _refuse_empty(binding.ObjectFileRef.from_data(image))
    machine = binding.Target.from_triple(host().triple).create_target_machine(
        reloc="pic", codemodel="small"
    )
    jit = binding.create_lljit_compiler(machine, use_jit_link=True, suppress_errors=True)
    library = binding.JITLibraryBuilder().add_object_img(image)
    for name, address in imports.items():
        library.import_symbol(name, address)
    wanted = tuple(symbols)
    for name in wanted:
        library.export_symbol(name)
    try:
        tracker = library.link(jit, "kernel")
    except RuntimeError as error:
        raise InternalError("link machine code", "LLVM cannot link it", got=error) from error
    return _Linked(jit, tracker, {name: tracker[name] for name in wanted})


def _refuse_empty(image: Any) -> None:
    """Refuse an object without code, on which LLVM's linker aborts."""
    if not any(section.is_text() and section.size() for section in image.sections()):
        raise InternalError(
            "link machine code",
            "the code is empty",
            because="every way through it is undefined, for example a store to a null pointer",
        )


@contextlib.contextmanager
def _parsed(text: str, options: Options) -> Iterator[Any]:
    """Parse a text to a module for a ``with`` block, and free it with all its data afterwards.

    The module has a context of its own, since what debug information names stays as long as its
    context; and goes before it, in this order: a garbage collector that finds both would take any.
    """
    binding = _llvm()
    context = binding.create_context()
    try:
        module = _parse(text, context, options)
        try:
            yield module
        finally:
            module.close()
    finally:
        context.close()


def _parse(text: str, context: Any, options: Options) -> Any:
    # Outside the `try`: an error about the target is not one of `text`.
    layout = str(_machine(options).target_data)
    try:
        module = _llvm().parse_assembly(text, context)
    except RuntimeError as error:
        raise _invalid(text, error) from error
    try:
        module.triple = options.triple
        module.data_layout = layout
        module.verify()
    except RuntimeError as error:
        module.close()
        raise _invalid(text, error) from error
    except BaseException:
        module.close()
        raise
    return module


def _invalid(text: str, error: RuntimeError) -> InternalError:
    return InternalError(
        "read LLVM IR", "the text is not valid", got=error, excerpt=_excerpt(text, str(error))
    )


def _excerpt(text: str, message: str) -> str | None:
    """Return the lines around the place that LLVM names as ``<string>:line:column``."""
    place = re.search(r"<string>:(\d+):", message)
    if place is None:
        return None
    number = int(place[1])
    lines = text.splitlines()[max(number - 3, 0) : number + 1]
    return "\n".join(lines)


def forget_machines() -> None:
    """Make LLVM's machines anew: only then does LLVM print which features it does not know."""
    _machine.cache_clear()


@lru_cache(maxsize=16)
def _machine(options: Options) -> Any:
    """Return LLVM's description of the processor, which modules are compiled for one by one.

    It is kept: to make it anew three times was a quarter of the time of a small module. Threads
    share it, since llvmlite calls LLVM under one lock, and LLVM changes it only during a call.
    """
    try:
        target = _llvm().Target.from_triple(options.triple)
    except RuntimeError as error:
        raise TargetError(f"compile for {options.triple}", "unknown to LLVM", got=error) from error
    return target.create_target_machine(
        cpu=options.cpu,
        features=",".join(options.features),
        opt=options.opt_level,
        reloc="static" if options.triple.startswith("wasm") else "pic",
        codemodel="small",
        abiname="lp64d" if options.triple.startswith("riscv64") else "",
    )


@dataclass(frozen=True, slots=True)
class _Names:
    """Names of the functions that a module defines and imports, before LLVM's passes."""

    symbols: tuple[str, ...]
    imports: tuple[str, ...]

    @classmethod
    def of(cls, module: Any) -> _Names:
        functions = list(module.functions)
        own = [f for f in functions if not f.is_declaration and f.linkage.name == "external"]
        imports = (f.name for f in functions if f.is_declaration)
        return cls(tuple(f.name for f in own), tuple(imports))


def _through_passes(
    text: str,
    options: Options,
    finish: Callable[[Any, _Names], T],
    *,
    is_for_here: bool = True,
) -> T:
    """Run LLVM's passes on `text`, and return the result of `finish` on the module."""
    with _parsed(text, options) as module:
        names = _Names.of(module)
        if is_for_here:
            externs.resolve(names.imports)
        _run_passes(module, options)
        try:
            module.verify()
        except RuntimeError as error:
            if not options.slp_vectorize:
                raise InternalError(
                    "compile", "LLVM's passes broke the module", got=error
                ) from error
        else:
            return finish(module, names)
    # LLVM 22's SLP vectorizer turns some long basic blocks into code that uses values before their
    # definition; LLVM then aborts.
    careful = replace(options, slp_vectorize=False)
    return _through_passes(text, careful, finish, is_for_here=is_for_here)


def _run_passes(module: Any, options: Options) -> None:
    binding = _llvm()
    level = options.opt_level if options.pass_level is None else options.pass_level
    tuning = binding.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_vectorization = options.loop_vectorize
    tuning.loop_interleaving = options.loop_vectorize
    tuning.slp_vectorization = options.slp_vectorize
    tuning.loop_unrolling = options.unroll
    builder = binding.create_pass_builder(_machine(options), tuning)
    manager = builder.getModulePassManager()
    try:
        manager.run(module, builder)
    finally:
        # llvmlite 0.50 has this method in two base classes, and `close` finds the empty one.
        # Without this call, 80 KiB and more of pass data would leak for each module.
        binding.newpassmanagers.NewPassManager._dispose(manager)
        manager.detach()
