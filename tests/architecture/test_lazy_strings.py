"""Strings that name code, ``"package.module:attribute"``: import-linter cannot see these.

A family (targets, code generators, operators, …) has one ``REGISTRY`` of names and such strings, a
`dlcompiler.registry.Registry`. Each string must resolve, and must respect the layers as an import
would.
"""

import ast
import importlib
import re

LAZY = re.compile(r"(dlcompiler(?:_widgets)?(?:\.\w+)*):(\w+)")
MODULE = re.compile(r"dlcompiler(?:_widgets)?(?:\.\w+)+")

# References upward: the display table, by which a core object reaches its views, and the name
# create_schedule, which classic code finds in te.
UPWARD = {"dlcompiler.display", "dlcompiler.te"}

# The operators of graphs are data: their modules import nothing that must not load early.
EAGER = {"dlcompiler.graph.operators"}


def _constants(tree):
    """Yield the string constants of a tree that stand as values, not as docstrings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node


def _registries(source):
    for node in source.nodes:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        names = [target.id for target in targets if isinstance(target, ast.Name)]
        if isinstance(node, ast.Assign | ast.AnnAssign) and "REGISTRY" in names:
            yield node


def _resolves(module, attribute):
    try:
        return hasattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError:
        return False


def test_registries_hold_lazy_strings_only(sources):
    for source in sources:
        for registry in _registries(source) if source.module not in EAGER else ():
            call = registry.value
            is_lazy = isinstance(call, ast.Call) and ast.unparse(call.func) == "Registry"
            assert is_lazy, f"{source.at(registry)}: expected Registry(noun, {{name: place, …}})"
            for value in call.args[1].values:
                lazy = isinstance(value, ast.Constant) and LAZY.fullmatch(str(value.value))
                assert lazy, f"{source.at(value)}: expected 'dlcompiler.module:attribute'"


def test_lazy_strings_resolve(sources):
    for source in sources:
        for node in _constants(source.tree):
            if match := LAZY.fullmatch(node.value):
                assert _resolves(*match.groups()), f"{source.at(node)}: nothing at {node.value}"


def test_lazy_strings_respect_the_layers(sources, layers):
    for source in sources:
        for node in _constants(source.tree):
            match = LAZY.fullmatch(node.value)
            if match and source.module not in UPWARD:
                allowed = layers.allows(source.module, match[1])
                assert allowed, f"{source.at(node)}: {node.value} is not below {source.module}"


def test_import_module_respects_the_layers(sources, layers):
    for source in sources:
        for node in source.nodes:
            if not isinstance(node, ast.Call) or "import_module" not in ast.unparse(node.func):
                continue
            for argument in node.args[:1]:
                name = argument.value if isinstance(argument, ast.Constant) else ""
                if MODULE.fullmatch(str(name)) and source.module not in UPWARD:
                    allowed = layers.allows(source.module, name)
                    assert allowed, f"{source.at(node)}: {name} is not below {source.module}"
