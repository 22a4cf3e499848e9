# SPDX-License-Identifier: Apache-2.0
"""Law: who may look into whom. The table is rooms.py."""

import unittest

import rooms
import tree


def room_of(path):
    """The longest room that holds this path, or None. Generated protobuf headers are the room "proto" or their own."""
    best = None
    for room in list(rooms.ROOMS) + ["proto"]:
        if path.startswith(room + "/") and (best is None or len(room) > len(best)):
            best = room
    return best


def library_of(include):
    """The library of a header in angle brackets; "" for the system's and the language's, None when unknown."""
    for library, beginnings in rooms.LIBRARIES.items():
        if include.startswith(beginnings):
            return library
    if include.startswith(rooms.SYSTEM_FOLDERS) or "/" not in include:
        return ""
    return None


def implied_library(include):
    if include.endswith(".grpc.pb.h"):
        return "grpc"
    return "protobuf" if include.endswith(".pb.h") else ""


class Layers(unittest.TestCase):

    def code(self):
        return [p for p in tree.files(*tree.CPP) if not p.startswith("deploy/")]

    def test_every_file_is_in_a_room(self):
        for path in self.code():
            with self.subTest(path):
                self.assertIsNotNone(room_of(path), "no room: give its folder a row in tests/laws/rooms.py")

    def test_includes_are_allowed(self):
        for path in self.code():
            room = room_of(path)
            if room is None:
                continue
            for include, _ in tree.includes(path):
                with self.subTest(f"{path} includes {include}"):
                    self.check(path, room, include)

    def check(self, path, room, include):
        allowed_rooms, allowed_libraries = rooms.ROOMS[room]
        target = room_of(include)
        if target is not None:
            if target != room and allowed_rooms != rooms.EVERYTHING:
                self.assertIn(target, allowed_rooms, f"{room} may not look into {target}: pass a value down instead, or "
                              "change the row in tests/laws/rooms.py and say why in the commit")
            library = implied_library(include)
        else:
            library = library_of(include)
            self.assertIsNotNone(library, "an unknown library: add it to LIBRARIES in tests/laws/rooms.py")
        if library:
            self.assertIn(library, allowed_libraries, f"{room} may not know {library}: tests/laws/rooms.py says who may")

    def test_quotes_are_for_our_own_headers(self):
        for path in self.code():
            for include, quoted in tree.includes(path):
                with self.subTest(f"{path} includes {include}"):
                    ours = room_of(include) is not None
                    google_style = include.startswith(("absl/",))
                    if quoted:
                        self.assertTrue(ours or "/" in include, "name it by its path from the root")
                    else:
                        self.assertFalse(ours or google_style, "own headers and Abseil's are included in quotes")

    def test_the_client_library_needs_only_the_standard_library(self):
        for path in self.code():
            if room_of(path) in rooms.PURE_ROOMS:
                self.check_pure(path)

    def check_pure(self, start):
        came_from = {start: None}
        todo = [start]
        while todo:
            path = todo.pop()
            for include, _ in tree.includes(path):
                library = library_of(include) if room_of(include) is None else implied_library(include)
                chain = [include, path]
                while came_from[chain[-1]]:
                    chain.append(came_from[chain[-1]])
                with self.subTest(start):
                    self.assertNotIn(library, rooms.IMPURE_LIBRARIES,
                                     "reaches a library that libphobos.so cannot hold: " + " <- ".join(chain))
                if include not in came_from and include in set(tree.files(".h")):
                    came_from[include] = path
                    todo.append(include)

    def test_no_two_rooms_reach_each_other(self):
        reach = {}
        for path in self.code():
            room = room_of(path)
            for include, _ in tree.includes(path):
                target = room_of(include)
                if room and target and target != room:
                    reach.setdefault(room, {}).setdefault(target, f"{path} includes {include}")
        for room in reach:
            loop = find_loop(reach, room)
            with self.subTest(room):
                self.assertIsNone(loop, "a cycle of rooms; values go down, results come back: " + "; ".join(loop or []))

    def test_the_table_itself_has_no_cycle(self):
        table = {room: {r: f"{room} may look into {r}" for r in allowed if r != "*"}
                 for room, (allowed, _) in rooms.ROOMS.items()}
        for room in table:
            self.assertIsNone(find_loop(table, room), "tests/laws/rooms.py allows a cycle")


def find_loop(reach, start):
    """The steps of a way from start back to start, or None."""
    ways = {start: []}
    todo = [start]
    while todo:
        room = todo.pop()
        for target, step in reach.get(room, {}).items():
            if target == start:
                return ways[room] + [step]
            if target not in ways:
                ways[target] = ways[room] + [step]
                todo.append(target)
    return None


class TheChecksThemselves(unittest.TestCase):

    def test_find_loop(self):
        reach = {"a": {"b": "a>b"}, "b": {"c": "b>c"}, "c": {"b": "c>b"}}
        self.assertIsNone(find_loop(reach, "a"))
        self.assertEqual(find_loop(reach, "b"), ["b>c", "c>b"])

    def test_a_forbidden_include_is_refused(self):
        for path, include in (("compiler/sema/x.cc", "llvm/IR/Value.h"), ("client/stub/x.cc", "absl/strings/str_cat.h"),
                              ("daemon/engine/x.cc", "grpcpp/grpcpp.h"), ("daemon/tuner/x.cc", "sqlite3.h"),
                              ("cache/x.cc", "daemon/engine/key.h"), ("client/launch/x.cc", "cuda.h"),
                              ("cache/x.cc", "boost/any.hpp"), ("client/cpp/x.cc", "proto/phobos/tuner/v1/types.pb.h")):
            with self.assertRaises(AssertionError, msg=f"{path} includes {include}"):
                Layers("check").check(path, room_of(path), include)


if __name__ == "__main__":
    unittest.main()
