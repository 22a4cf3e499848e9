# SPDX-License-Identifier: Apache-2.0
"""Just enough of C++ for the budgets: text without comments and strings, and where functions begin and end.

Not a parser: braces are matched, and a block is a function's when what comes before it reads like one. Good to a line or
two, which is good enough for a budget.
"""

import re

_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<d>[^()\s\\]{0,16})\((?:.*?)\)(?P=d)"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Fa-f])\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL)


def _blank(match, keep_comments):
    text = match.group(0)
    if keep_comments and text.startswith(("//", "/*")):
        return text
    return re.sub(r"[^\n]", " ", text)


def without_comments(text):
    """The code with comments, strings and characters blanked out; lines stay where they are."""
    return _TOKENS.sub(lambda m: _blank(m, keep_comments=False), text)


def comments(text):
    """(line counted from 1, the comment) of each."""
    for match in _TOKENS.finditer(text):
        if match.group(0).startswith(("//", "/*")):
            yield text.count("\n", 0, match.start()) + 1, match.group(0)


def comment_lines(text):
    """How many lines hold a comment."""
    plain = _TOKENS.sub(lambda m: _blank(m, keep_comments=True), text)
    bare = without_comments(text)
    return sum(a != b for a, b in zip(plain.split("\n"), bare.split("\n")))


_NOT_A_FUNCTION = re.compile(r"\bnamespace\b[\w:\s]*$|^\s*(?:extern\b[^(]*$|(?:template\s*<[^{}]*>\s*)?"
                             r"(?:class|struct|union|enum)\b[^()]*(?:\([^()]*\)[^()]*)*$)|[=]\s*$|^\s*$")


def functions(text):
    """(first line, last line) of each outermost block of code that reads like a function's, counted from 1."""
    code = without_comments(text)
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code, flags=re.MULTILINE)
    found = []
    open_blocks = []  # True: a function's, or inside one
    head_start = 0
    for match in re.finditer(r"[{};]", code):
        at, sign = match.start(), match.group(0)
        if sign == "{":
            head = code[head_start:at]
            inside = bool(open_blocks) and open_blocks[-1] is not None
            starts = not inside and not _NOT_A_FUNCTION.search(head.strip()) and "(" in head
            line = code.count("\n", 0, head_start + len(head) - len(head.lstrip())) + 1
            open_blocks.append((line, True) if starts else ((0, False) if inside else None))
        elif sign == "}" and open_blocks:
            block = open_blocks.pop()
            if block and block[1]:
                found.append((block[0], code.count("\n", 0, at) + 1))
        head_start = at + 1
    return found


def most_pure_virtuals(text):
    """The largest number of pure virtual functions in one class of this text."""
    code = without_comments(text)
    counts = [0]
    for match in re.finditer(r"\b(?:class|struct)\s+\w+[^;{}]*\{", code):
        depth, end = 1, match.end()
        while depth and end < len(code):
            depth += {"{": 1, "}": -1}.get(code[end], 0)
            end += 1
        counts.append(len(re.findall(r"\)\s*(?:const\s*)?(?:noexcept\s*)?=\s*0\s*;", code[match.end():end])))
    return max(counts)
