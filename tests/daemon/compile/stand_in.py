#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A compiler that takes phobos-compile's command line and does what the comments of its source say.

    # space 8            eight variants, BLOCK = 0, 1, 2 ...   (default 4)
    # artifact PATH      every artifact is a copy of this file, with "#<index>" at its end
    # entry 2 NAME       entry of variant 2 (default add)
    # exclude 1 TEXT     the space leaves variant 1 out
    # error 1 TEXT       compile_error with this reason; `race 1 TEXT`, `unsupported 1 TEXT`, `unproven 1 TEXT` alike
    # shadow 3 NAME      an unproven variant 3 has a race-recording form, with one shadow, of this parameter
    # crash 3            SIGSEGV when variant 3 is compiled; `# hang 3`: never ends; `# memory 3`: takes 8 GiB
    # kill 3             SIGKILL; `# kill 3 PATH`: unless PATH exists, which it makes; `# kill describe` alike
    # lie 2 missing      the artifact is not there; `digest`: another digest; `settings`; `path`; `folder`: one is there; `silent`: no word of it
    # manifest-is-folder manifest.json is a folder
    # manifest TEXT      manifest.json is TEXT; `# format 99`; `# chip other`; `# unchecked`; `# fingerprint other`
    # slots x y out      the manifest's slots (default: x y out extent:N)
    # refuse TEXT        the source is wrong: TEXT on standard error
    # full TEXT          the results cannot be written: TEXT on standard error
    # kernels NAMES      those that the source has; another is a wrong command line
    # log PATH           a line a run: the variants
"""

import argparse
import hashlib
import json
import os
import signal
import sys
import time

FINGERPRINT = "stand-in 1"


def directives(text):
    found = []
    for line in text.splitlines():
        if line.startswith("# "):
            found.append(line[2:].split(None, 2))
    return found


def value(found, verb, default=None):
    for words in found:
        if words[0] == verb:
            return " ".join(words[1:])
    return default


def of_variant(found, verb, index):
    """The rest of a line about this variant, or None."""
    for words in found:
        if words[0] == verb and len(words) > 1 and words[1] == str(index):
            return words[2] if len(words) > 2 else ""
    return None


def settings(index):
    return [{"name": "BLOCK", "intValue": str(index)}]


def describe(found, kernel):
    canonical = "kernel " + kernel + value(found, "canonical", "")
    variants = []
    for index in range(int(value(found, "space", "4"))):
        variant = {"index": index, "settings": settings(index), "threads": 256, "indexBits": 32}
        excluded = of_variant(found, "exclude", index)
        if excluded is not None:
            variant["excludedReason"] = excluded
        variants.append(variant)
    tensor = {"dtype": "DTYPE_F32", "isTensor": True, "dims": [{"extent": "N"}]}
    return {
        "kernel": kernel,
        "canonicalSource": canonical,
        "sourceDigest": hashlib.sha256(canonical.encode()).hexdigest(),
        "parameters": [
            dict(tensor, name="x", isRead=True), dict(tensor, name="y", isRead=True),
            dict(tensor, name="out", isWritten=True)
        ],
        "extents": ["N"],
        "key": ["N"],
        "variants": variants,
        "gridDimsUsed": 1,
    }


def artifact(found, index, out):
    bytes_ = open(value(found, "artifact", "/dev/null"), "rb").read() + b"#%d" % index
    name = "variant-%d.so" % index
    lie = of_variant(found, "lie", index)
    if lie == "folder":
        os.mkdir(os.path.join(out, name))
    elif lie != "missing":
        with open(os.path.join(out, name), "wb") as file:
            file.write(bytes_)
    digest = hashlib.sha256(b"other" if lie == "digest" else bytes_).hexdigest()
    return {
        "file": "../../etc/passwd" if lie == "path" else name,
        "digest": digest,
        "entry": of_variant(found, "entry", index) or "add"
    }


def die(found, what):
    mark = of_variant(found, "kill", what)
    if mark is not None and not os.path.exists(mark):
        if mark:
            open(mark, "w").close()
        os.kill(os.getpid(), signal.SIGKILL)


def compile_variant(found, index, out):
    if of_variant(found, "crash", index) is not None:
        print("about to crash", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    die(found, index)
    if of_variant(found, "hang", index) is not None:
        while True:
            time.sleep(1)
    if of_variant(found, "memory", index) is not None:
        try:
            bytearray(8 << 30)
        except MemoryError:
            os.abort()
    variant = {"index": index, "settings": settings(index), "compileNs": "1000"}
    for verb, status in (("error", "COMPILE_ERROR"), ("race", "RACE"), ("unsupported", "UNSUPPORTED"), ("exclude",
                                                                                                      "EXCLUDED")):
        reason = of_variant(found, verb, index)
        if reason is not None:
            return dict(variant, status="VARIANT_STATUS_" + status, reason=reason)
    unproven = of_variant(found, "unproven", index)
    variant["raceVerdict"] = "RACE_VERDICT_" + ("RACE_FREE" if unproven is None else "UNPROVEN")
    variant["raceDetail"] = unproven or ""
    shadow = of_variant(found, "shadow", index)
    if shadow is not None:
        shadows = [{"parameter": shadow, "content": "LAST_WRITE"}]
        variant["recording"] = {"artifact": artifact(found, 1000 + index, out), "shadows": shadows}
    if of_variant(found, "lie", index) == "settings":
        variant["settings"] = settings(index + 1)
    return dict(variant, status="VARIANT_STATUS_COMPILED", artifact=artifact(found, index, out), somethingNew=1)


def compile_all(found, options):
    description = describe(found, options.kernel)
    indexes = [v["index"] for v in description["variants"]]
    if options.variants:
        first, last = options.variants.split("-")
        indexes = list(range(int(first), int(last) + 1))
    log = value(found, "log")
    if log:
        with open(log, "a") as file:
            file.write(" ".join(map(str, indexes)) + "\n")
    if value(found, "refuse"):
        print(value(found, "refuse"), file=sys.stderr)
        return 1
    if value(found, "full"):
        print(value(found, "full"), file=sys.stderr)
        return 3
    os.makedirs(options.out, exist_ok=True)
    variants = [compile_variant(found, i, options.out) for i in indexes if of_variant(found, "lie", i) != "silent"]
    manifest = {
        "format": int(value(found, "format", "1")),
        "compilerFingerprint": value(found, "fingerprint", FINGERPRINT),
        "chip": value(found, "chip", options.chip),
        "description": description,
        "variants": variants,
        "racesChecked": value(found, "unchecked") is None and options.check_races,
        "slots": value(found, "slots", "x y out extent:N").split(),
        "unknownField": {
            "a": 1
        },
    }
    if value(found, "manifest-is-folder") is not None:
        os.mkdir(os.path.join(options.out, "manifest.json"))
        return 0
    text = value(found, "manifest") or json.dumps(manifest)
    with open(os.path.join(options.out, "manifest.json"), "w") as file:
        file.write(text)
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file", nargs="?")
    for name in ("kernel", "chip", "variants", "out", "jobs", "format", "file-name"):
        parser.add_argument("--" + name)
    for name in ("all-variants", "check-races", "describe", "version"):
        parser.add_argument("--" + name, action="store_true")
    options = parser.parse_args()
    if options.version:
        print(FINGERPRINT)
        return 0
    found = directives(sys.stdin.read())
    if options.describe:
        die(found, "describe")
        if value(found, "refuse"):
            print(options.file_name + ":1:1: " + value(found, "refuse"), file=sys.stderr)
            return 1
        if options.kernel not in value(found, "kernels", options.kernel).split():
            print(f"phobos-compile: the file has no kernel '{options.kernel}' at its top level; it has",
                  f"{value(found, 'kernels')}\nphobos-compile --help shows how it is written", file=sys.stderr)
            return 2
        print(value(found, "description") or json.dumps(describe(found, options.kernel)))
        return 0
    return compile_all(found, options)


sys.exit(main())
