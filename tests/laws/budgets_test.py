# SPDX-License-Identifier: Apache-2.0
"""Law: the budgets of size, of tests too. Data tables count like code."""

import ast
import collections
import os
import unittest

import cpp
import tree

HEADER_LINES = 250
SOURCE_LINES = 600
FUNCTION_LINES = 60
TEST_FUNCTION_LINES = 100  # one story from its begin to its end, with its tables
FOLDER_FILES = 15
PURE_VIRTUALS = 8
HEADER_COMMENT_SHARE = 0.30  # of the lines that are not blank, over all headers

# File or folder -> why it may be larger. A budget serves the reader; where it would not, say so here.
EXCEPTIONS = {
    "client/c/phobos.h": "the one header that a C program includes",
    "client/stub/wire/fields.h": "the table of the wire's field numbers, one message after the other",
    "client/stub/wire/types.h": "the messages of proto/ as plain structs, which proto/ explains",
    "client/stub/wire/verbs.h": "the same for requests and answers",
    "compiler/syntax/ast.h": "one struct for each construct of the grammar, which belong side by side",
}

CODE = (".h", ".cc", ".c", ".py", ".proto")


def sources(*suffixes):
    return [p for p in tree.files(*suffixes) if "_seeds/" not in p]  # what a fuzzer begins with is data


def code(*suffixes):
    return [p for p in sources(*suffixes) if not tree.is_test(p)]


def function_lines(path):
    return TEST_FUNCTION_LINES if tree.is_test(path) else FUNCTION_LINES


class Budgets(unittest.TestCase):

    def within(self, what, value, most, remedy):
        self.assertLessEqual(value, most, f"{what}: {value}, at most {most}. {remedy}")

    def test_headers(self):
        for path in sources(".h"):
            if path in EXCEPTIONS:
                continue
            with self.subTest(path):
                self.within("lines", tree.read(path).count("\n"), HEADER_LINES, "Split the header by what its users need.")

    def test_sources(self):
        for path in sources(".cc", ".c", ".py"):
            with self.subTest(path):
                self.within("lines", tree.read(path).count("\n"), SOURCE_LINES, "Split the file by what it does.")

    def test_functions(self):
        for path in sources(".h", ".cc", ".c"):
            for first, last in cpp.functions(tree.read(path)):
                with self.subTest(f"{path}:{first}"):
                    self.within("lines of a function", last - first + 1, function_lines(path), "Name its steps as functions.")

    def test_python_functions(self):
        for path in sources(".py"):
            for node in ast.walk(ast.parse(tree.read(path))):
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    with self.subTest(f"{path}:{node.lineno}"):
                        self.within("lines of a function", node.end_lineno - node.lineno + 1, function_lines(path),
                                    "Name its steps as functions.")

    def test_folders(self):
        count = collections.Counter(os.path.dirname(p) for p in sources(*CODE))
        for folder, files in count.items():
            if folder in EXCEPTIONS:
                continue
            with self.subTest(folder):
                self.within("files of code in a folder", files, FOLDER_FILES, "Give one of its subjects a folder.")

    def test_interfaces(self):
        for path in code(".h"):
            with self.subTest(path):
                self.within("pure virtual functions of a class", cpp.most_pure_virtuals(tree.read(path)), PURE_VIRTUALS,
                            "Split the interface by who calls it.")

    def test_exceptions_are_still_needed(self):
        for path in EXCEPTIONS:
            with self.subTest(path):
                self.assertTrue(os.path.exists(os.path.join(tree.root(), path)), "gone: take it out of EXCEPTIONS")

    def test_headers_speak(self):
        comments = lines = 0
        for path in code(".h"):
            if path in EXCEPTIONS:
                continue
            text = tree.read(path)
            comments += cpp.comment_lines(text)
            lines += sum(bool(line.strip()) for line in text.split("\n"))
        if lines:
            self.assertGreaterEqual(comments / lines, HEADER_COMMENT_SHARE,
                                    "share of comments in headers: say owner, units, REQUIRES and errors at each method")

    def test_each_header_opens_with_what_it_is(self):
        for path in sources(".h"):
            with self.subTest(path):
                lines = tree.read(path).split("\n")
                opens = len(lines) > 3 and lines[1].strip() in ("//", "*", "") and lines[2].lstrip().startswith(("//", "*", "/*"))
                self.assertTrue(opens, "open with a paragraph after the SPDX line: what it is, what it is not, who may call "
                                "it from which thread")


class TheChecksThemselves(unittest.TestCase):

    def test_functions_are_found(self):
        text = '''
namespace a {
struct S {
  int x() const { return 1; }
  int y = 0;
};
constexpr int kTable[] = {
    1,
};
// { a brace in a comment
void F(const char* s = "{") {
  if (s) {
    auto g = [] { return 2; };
  }
}
template <typename T>
S<T>::S(int a)
    : a_{a} {
}
}  // namespace a
'''
        self.assertEqual([(4, 4), (11, 15)], cpp.functions(text)[:2])
        self.assertGreaterEqual(len(cpp.functions(text)), 3)

    def test_pure_virtuals_are_counted(self):
        self.assertEqual(2, cpp.most_pure_virtuals("class A { virtual int F() const = 0; virtual void G(int a = 0) = 0; };"))

    def test_comments_are_counted(self):
        self.assertEqual(2, cpp.comment_lines('int a;  // one\n/* two */\nconst char* s = "// none";\n'))

    def test_a_long_function_is_refused(self):
        text = "void F() {\n" + "  G();\n" * 120 + "}\n"
        (first, last), = cpp.functions(text)
        self.assertEqual((1, 122), (first, last))


if __name__ == "__main__":
    unittest.main()
