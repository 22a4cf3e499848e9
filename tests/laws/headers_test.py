# SPDX-License-Identifier: Apache-2.0
"""Law: a header compiles alone. Its own source file includes it first, or the compiler proves it here."""

import subprocess
import tempfile
import unittest

import tree

COMPILE = ["clang++-14", "-fsyntax-only", "-std=c++20", "-x", "c++", "-w", "-I.", "-isystem", "/usr/lib/llvm-19/include"]


class Headers(unittest.TestCase):

    def first_included(self):
        """Headers that some source file includes before anything else."""
        firsts = set()
        for path in tree.files(".cc", ".c"):
            found = tree.includes(path)
            if found:
                firsts.add(found[0][0])
        return firsts

    def test_own_source_includes_it_first(self):
        sources = set(tree.files(".cc", ".c"))
        for path in tree.files(".h"):
            for source in (path[:-2] + ".cc", path[:-2] + ".c"):
                if source in sources:
                    with self.subTest(path):
                        found = [name for name, _ in tree.includes(source)]
                        self.assertEqual(path, found[0] if found else None, f"{source} must include its header first")

    def test_the_others_compile_alone(self):
        proven = self.first_included()
        alone = [p for p in tree.files(".h") if p not in proven and not p.startswith("deploy/")]
        with tempfile.TemporaryDirectory() as generated:
            self.generate_protobuf_headers(generated)
            for path in alone:
                with self.subTest(path):
                    answer = subprocess.run(COMPILE + ["-I", generated, path], cwd=tree.root(), capture_output=True,
                                            text=True)
                    self.assertEqual(0, answer.returncode,
                                     "does not compile alone; include what it uses:\n" + answer.stderr[:2000])

    def generate_protobuf_headers(self, folder):
        protos = tree.files(".proto")
        subprocess.run(["protoc", "-I.", f"--cpp_out={folder}", "--plugin=protoc-gen-grpc=/usr/bin/grpc_cpp_plugin",
                        f"--grpc_out={folder}"] + protos, cwd=tree.root(), check=True)


if __name__ == "__main__":
    unittest.main()
