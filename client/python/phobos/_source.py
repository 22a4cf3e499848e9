# SPDX-License-Identifier: Apache-2.0
"""A kernel's source text as Python knows it: the whole file's, or the notebook cell's."""

from ._errors import KernelSourceError

LIMIT = 1 << 20  # bytes; the daemon takes no more


def text_of(function):
    """The text of the file that defines `function`. Raises KernelSourceError: Python has none."""
    import linecache
    import os

    path = function.__code__.co_filename
    linecache.checkcache(path)
    text = "".join(linecache.getlines(path, function.__globals__))
    if text and not os.path.exists(path):
        text += _of_earlier_cells(text, function.__globals__)
    if not text:
        raise KernelSourceError(
            f"Python has no source text for {path!r}, and a kernel is compiled from its text",
            kernel=function.__name__,
            reason="no_source",
            remedy="Put the kernel in a file and import it, or define it in a notebook.",
        )
    if len(text.encode()) > LIMIT:
        raise KernelSourceError(
            f"{path} is larger than 1 MiB",
            kernel=function.__name__,
            reason="limit",
            remedy="Put the kernel in a file of its own.",
        )
    return text


def _names_of_its_own(function):
    """Names that a decorated function gives a meaning: parameters, autotuned constants, extents."""
    import ast

    arguments = function.args
    parameters = arguments.posonlyargs + arguments.args + arguments.kwonlyargs
    own = {parameter.arg for parameter in parameters}
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and getattr(decorator.func, "attr", "") == "autotune":
            own |= {keyword.arg for keyword in decorator.keywords}
    for parameter in parameters:
        if isinstance(parameter.annotation, ast.Subscript):  # ph.tensor[ph.f32][M, N]
            sides = parameter.annotation.slice
            own |= {node.id for node in ast.walk(sides) if isinstance(node, ast.Name)}
    return own


def _of_earlier_cells(text, names):
    """What a cell uses and cells before it have bound, as text: the language under its name, and
    constants, but for names that have a meaning of their own in a kernel. It goes to the end of the
    cell's own text, whose lines keep their numbers.
    """
    import ast
    import math
    import sys

    try:
        nodes = list(ast.walk(ast.parse(text)))
    except SyntaxError:
        return ""  # the compiler says where
    bound = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    for node in nodes:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    used = {node.id for node in nodes if isinstance(node, ast.Name)} - bound
    own = set()
    for node in nodes:
        if isinstance(node, ast.FunctionDef) and node.decorator_list:
            own |= _names_of_its_own(node)
    lines = ""
    for name in sorted(used & names.keys()):
        value = names[name]
        if value is sys.modules["phobos.lang"]:
            lines += f"import phobos.lang as {name}\n"
        elif value is sys.modules["phobos"] and name == "phobos":
            lines += "import phobos.lang\n"
        elif type(value) is float and not math.isfinite(value):
            continue  # has no literal
        elif type(value) in (bool, int, float, str) and name not in own:
            lines += f"{name} = {value!r}\n"
    return "\n" + lines if lines else ""


def check_annotations_deferred(frame):
    """Called with the decorators of a kernel, just before Python evaluates its annotations.

    Without `from __future__ import annotations` an extent in an annotation would be a NameError
    that explains nothing, so this raises a KernelSourceError in its place. `frame` is the one that
    defines the kernel.
    """
    import __future__
    import sys

    if sys.version_info >= (3, 14) or frame.f_code.co_flags & __future__.annotations.compiler_flag:
        return
    missing = _unknown_name(frame)
    if missing is None:
        return
    name, parameter, kernel = missing
    raise KernelSourceError(
        f"{name!r} in the annotation of {parameter!r} is an extent, which Python cannot evaluate",
        kernel=kernel,
        reason="annotations",
        remedy="Put `from __future__ import annotations` at the top of the file.",
    )


def _unknown_name(frame):
    """(name, parameter, kernel) of the first annotation that Python cannot evaluate, or None."""
    import ast
    import builtins
    import linecache

    try:
        tree = ast.parse("".join(linecache.getlines(frame.f_code.co_filename, frame.f_globals)))
    except SyntaxError:
        return None
    known = {*frame.f_locals, *frame.f_globals, *vars(builtins)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef) or not node.decorator_list:
            continue
        if not node.decorator_list[0].lineno <= frame.f_lineno <= node.lineno:
            continue
        for argument in node.args.args:
            for part in ast.walk(argument.annotation) if argument.annotation else ():
                if isinstance(part, ast.Name) and part.id not in known:
                    return part.id, argument.arg, node.name
    return None
