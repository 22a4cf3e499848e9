# SPDX-License-Identifier: Apache-2.0
"""The working tree as the laws see it: which files there are, and what a C++ file includes.

Bazel runs the laws outside its sandbox (they are tagged so), because they are about all files and no target has those
as its inputs. root() is the real tree; a file that git ignores is no part of it.
"""

import os
import re
import subprocess

CPP = (".h", ".cc", ".c")
SKIPPED_FOLDERS = {".git", ".cache", "dist", "__pycache__", "node_modules"}


def root():
    """The top folder: run.sh resolves it from a file that Bazel links into the runfiles."""
    return os.environ["PHOBOS_TREE"]


def files(*suffixes, under=""):
    """Paths from the root, sorted, of files with one of the suffixes; all files when none is given."""
    found = []
    for path in _listed():
        if path.startswith(under) and (not suffixes or path.endswith(suffixes)):
            found.append(path)
    return found


def read(path):
    with open(os.path.join(root(), path), encoding="utf-8", errors="surrogateescape") as file:
        return file.read()


def is_test(path):
    return path.startswith("tests/")


_INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]', re.MULTILINE)


def includes(path):
    """What a C++ file includes, in order: (path, True when in quotes)."""
    return [(name, quote == '"') for quote, name in _INCLUDE.findall(read(path))]


_listing = []


def _listed():
    if not _listing:
        _listing.extend(sorted(_from_git() or _from_folders()))
    return _listing


def _from_git():
    command = ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        answer = subprocess.run(command, cwd=root(), capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return []  # no git here, or a tree from an archive
    return [p for p in answer.split("\0") if p and os.path.isfile(os.path.join(root(), p))]


def _from_folders():
    found = []
    for folder, folders, names in os.walk(root()):
        folders[:] = [f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("bazel-")]
        found.extend(os.path.relpath(os.path.join(folder, n), root()) for n in names)
    return found
