#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts test cases in what Bazel reported: count_tests.py EVENTS.json [--lint=EVENTS.json]

The files come from --build_event_json_file. A case is one of GoogleTest's in test.xml, or one of Python's unittest by the
summary in the log; a test that names no cases, and one that did not build, counts as one. The lint counts as one. Prints
what failed, then as the last line "N passed, N failed". Exit status 0: some passed and none failed.
"""

import json
import re
import sys
import urllib.parse
import xml.etree.ElementTree


def main(arguments):
    passed, failed, skipped = 0, 0, 0
    broken = []
    for argument in arguments:
        if argument.startswith("--lint="):
            counts = count_lint(argument[len("--lint="):])
        else:
            counts = count_tests(argument)
        for name, (p, f, s) in counts.items():
            passed, failed, skipped = passed + p, failed + f, skipped + s
            if f:
                broken.append(name)
    if skipped:
        print(f"{skipped} skipped themselves (what they need is not on this machine).")
    for name in broken:
        print(f"FAILED: {name}")
    print(f"{passed} passed, {failed} failed")
    return 0 if passed and not failed else 1


def events(path):
    with open(path, encoding="utf-8") as file:
        for line in file:
            yield json.loads(line)


def count_tests(path):
    """Target -> (passed, failed, skipped)."""
    counts = {}
    expected = set()
    for event in events(path):
        identity = event.get("id", {})
        if "targetConfigured" in identity and event.get("configured", {}).get("targetKind", "").endswith("_test rule"):
            expected.add(identity["targetConfigured"]["label"])
        if "testResult" in identity:
            label = identity["testResult"]["label"]
            old = counts.get(label, (0, 0, 0))
            counts[label] = tuple(a + b for a, b in zip(old, count_result(event.get("testResult", {}))))
        if event.get("aborted", {}).get("reason") in ("ANALYSIS_FAILURE", "LOADING_FAILURE"):
            counts[str(identity)] = (0, 1, 0)
    for label in expected - set(counts):
        counts[f"{label} (did not build, or was not started)"] = (0, 1, 0)
    return counts


def count_result(result):
    outputs = {o["name"]: urllib.parse.unquote(urllib.parse.urlparse(o["uri"]).path)
               for o in result.get("testActionOutput", []) if o.get("uri", "").startswith("file:")}
    good = result.get("status") == "PASSED"
    passed, failed, skipped = count_xml(outputs.get("test.xml")) or count_unittest(outputs.get("test.log")) or (0, 0, 0)
    if good and passed + skipped == 0:
        passed = 1
    if not good and failed == 0:
        failed = 1  # crashed, timed out, or failed outside its cases
    return passed, failed, skipped


def count_xml(path):
    """GoogleTest's own report; None for the one Bazel writes when a test wrote none."""
    try:
        root = xml.etree.ElementTree.parse(path).getroot()
    except (OSError, TypeError, xml.etree.ElementTree.ParseError):
        return None
    cases = [case for case in root.iter("testcase") if case.get("classname")]
    if not cases:
        return None
    failed = sum(case.find("failure") is not None for case in cases)
    skipped = sum(case.get("status") == "notrun" or case.get("result") in ("skipped", "suppressed") for case in cases)
    return len(cases) - failed - skipped, failed, skipped


def count_unittest(path):
    """The sums that Python's unittest ends with; a log may hold several."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except (OSError, TypeError):
        return None
    ran = [int(n) for n in re.findall(r"^Ran (\d+) tests? in ", text, re.MULTILINE)]
    if not ran:
        return None
    verdicts = re.findall(r"^(?:OK|FAILED)(?: \((.*)\))?$", text, re.MULTILINE)

    def total(word):
        return sum(int(n) for verdict in verdicts for n in re.findall(rf"\b{word}=(\d+)", verdict))

    # A failure inside subTest counts once a subtest; no more than all cases can fail.
    failed = min(sum(ran), total("failures") + total("errors"))
    skipped = min(sum(ran) - failed, total("skipped"))
    return sum(ran) - failed - skipped, failed, skipped


def count_lint(path):
    for event in events(path):
        if "buildFinished" in event.get("id", {}):
            good = event.get("finished", {}).get("overallSuccess", False)
            return {"lint": (1, 0, 0) if good else (0, 1, 0)}
    return {"lint (did not finish)": (0, 1, 0)}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
