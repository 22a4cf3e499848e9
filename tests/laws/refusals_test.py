# SPDX-License-Identifier: Apache-2.0
"""The laws that the build itself enforces do refuse what they should: bad targets are built with the tree's own .bazelrc."""

import os
import shutil
import subprocess
import tempfile
import unittest

import tree

# Files of a small workspace. In base/, so that the flags .bazelrc gives to our own code apply.
WORKSPACE = {
    "base/BUILD.bazel": """
cc_library(name = "top", hdrs = ["top.h"], deps = [":middle"])
cc_library(name = "middle", hdrs = ["middle.h"], deps = ["//cache:bottom"])
cc_library(name = "good", srcs = ["good.cc"], deps = [":top", "@debian//:absl"])
cc_library(name = "ignored_status", srcs = ["ignored_status.cc"], deps = ["@debian//:absl"])
cc_library(name = "no_lock", srcs = ["no_lock.cc"], deps = ["@debian//:absl"])
cc_library(name = "indirect", srcs = ["indirect.cc"], deps = [":top"])
cc_library(name = "no_llvm", srcs = ["no_llvm.cc"])
""",
    "base/top.h": '#include "base/middle.h"\n',
    "base/middle.h": '#include "cache/bottom.h"\n',
    "base/good.cc": """
#include "absl/status/status.h"
#include "base/top.h"
absl::Status Do();
absl::Status Twice() {
  if (absl::Status status = Do(); !status.ok()) return status;
  return Do();
}
""",
    "base/ignored_status.cc": """
#include "absl/status/status.h"
absl::Status Do();
void Twice() {
  Do();
}
""",
    "base/no_lock.cc": """
#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
class Count {
 public:
  void Add() { ++count_; }

 private:
  absl::Mutex mutex_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};
void Use(Count& count) { count.Add(); }
""",
    "base/indirect.cc": '#include "cache/bottom.h"\n',
    "base/no_llvm.cc": '#include "llvm/IR/Value.h"\n',
    "cache/BUILD.bazel": """
cc_library(name = "bottom", hdrs = ["bottom.h"], visibility = ["//base:__pkg__"])
cc_library(name = "inside", hdrs = ["bottom.h"])
""",
    "cache/bottom.h": "\n",
    "daemon/BUILD.bazel": 'cc_library(name = "intruder", deps = ["//cache:inside"])\n',
}


class Refusals(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(dir=os.environ.get("TEST_TMPDIR"))
        for path in [".bazelrc", "WORKSPACE"] + tree.files(under="deploy/bazel/"):
            cls.write(path, tree.read(path))
        cls.write("deploy/BUILD.bazel", "")
        for path, text in WORKSPACE.items():
            cls.write(path, text)
        cls.output = cls.build("//base:all")
        cls.analysis = cls.build("//daemon:intruder")

    @classmethod
    def write(cls, path, text):
        place = os.path.join(cls.folder, path)
        os.makedirs(os.path.dirname(place), exist_ok=True)
        with open(place, "w", encoding="utf-8") as file:
            file.write(text)

    @classmethod
    def build(cls, target):
        command = ["bazel", "--batch", f"--output_user_root={cls.folder}/.output", "build", "--keep_going", "--jobs=2",
                   "--spawn_strategy=local", "--show_result=20", "--noshow_progress", "--color=no", target]
        answer = subprocess.run(command, cwd=cls.folder, capture_output=True, text=True, env={**os.environ, "HOME": cls.folder})
        return answer.stdout + answer.stderr

    @classmethod
    def tearDownClass(cls):
        subprocess.run(["chmod", "-R", "u+w", cls.folder], check=True)  # Bazel makes its outputs read-only
        shutil.rmtree(cls.folder)

    def test_the_good_one_builds(self):
        self.assertRegex(self.output, r"Target //base:good up-to-date", self.output)

    def test_an_ignored_status(self):
        self.assertRegex(self.output, r"base/ignored_status.cc:5:3: error: ignoring return value", self.output)

    def test_a_guarded_field_without_its_lock(self):
        self.assertRegex(self.output, r"base/no_lock.cc:\d+:\d+: error: writing variable 'count_' requires holding mutex",
                         self.output)

    def test_a_header_of_an_indirect_dependency(self):
        self.assertRegex(self.output, r"base/indirect.cc:1:\d+: error: module //base:indirect does not depend on", self.output)

    def test_llvm_without_the_dependency(self):
        self.assertRegex(self.output, r"base/no_llvm.cc:1:\d+: fatal error: 'llvm/IR/Value.h' file not found", self.output)

    def test_a_target_of_a_room_that_is_not_open(self):
        self.assertIn("target '//cache:inside' is not visible from target '//daemon:intruder'", self.analysis)


if __name__ == "__main__":
    unittest.main()
