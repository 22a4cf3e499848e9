#!/usr/bin/python3 -S
# SPDX-License-Identifier: Apache-2.0
"""phobos-compile for tests on the stand-in driver: the real compiler ($PHOBOS_FAKE_COMPILER), whose PTX gets comments at
its end that name a host twin of the kernel, compiled from the same source by the same compiler. A PTX artifact's digest is
that of the text with its comments. Twins lie in $PHOBOS_FAKE_TWINS, which must stay.
"""

import hashlib
import json
import os
import subprocess
import sys
import tempfile

HOST = "x86-64-v3"


def value_of(flag, arguments):
    return arguments[arguments.index(flag) + 1] if flag in arguments else ""


def with_value(flag, value, arguments):
    changed = list(arguments)
    changed[changed.index(flag) + 1] = value
    return changed


def variants(folder):
    with open(os.path.join(folder, "manifest.json")) as file:
        return json.load(file)


def forms(variant):
    """The variant's artifact, and that of its race-recording form: each where there is one."""
    return variant.get("artifact"), variant.get("recording", {}).get("artifact")


def add_twin(folder, artifact, twins, twin):
    path = os.path.join(folder, artifact["file"])
    with open(path, "rb") as file:
        text = file.read()
    comment = "// host-twin: %s %s %s %s\n" % (os.path.join(twins, twin["file"]), twin["entry"],
                                                twin.get("scratch_bytes", 0), artifact.get("threads", 0))
    text = text.rstrip(b"\0") + comment.encode()
    artifact["digest"] = hashlib.sha256(text).hexdigest()
    artifact["size_bytes"] = str(len(text))
    artifact["file"] = artifact["digest"] + ".ptx"
    os.unlink(path)
    with open(os.path.join(folder, artifact["file"]), "wb") as file:
        file.write(text)


def add_twins(folder, twins):
    manifest = variants(folder)
    hosts = {v.get("index", 0): forms(v) for v in variants(twins)["variants"]}
    for variant in manifest["variants"]:
        for artifact, twin in zip(forms(variant), hosts.get(variant.get("index", 0), ())):
            if artifact is not None and twin is not None:
                add_twin(folder, artifact, twins, twin)
    with open(os.path.join(folder, "manifest.json"), "w") as file:
        json.dump(manifest, file)


def main():
    compiler = os.environ["PHOBOS_FAKE_COMPILER"]
    arguments = sys.argv[1:]
    if not value_of("--chip", arguments).startswith("sm_") or "--describe" in arguments:
        os.execv(compiler, [compiler] + arguments)
    source = sys.stdin.buffer.read()
    done = subprocess.run([compiler] + arguments, input=source)
    if done.returncode != 0:
        return done.returncode
    twins = tempfile.mkdtemp(dir=os.environ["PHOBOS_FAKE_TWINS"])
    host = with_value("--out", twins, with_value("--chip", HOST, arguments))
    subprocess.run([compiler] + host, input=source, stdout=subprocess.DEVNULL, check=True)
    add_twins(value_of("--out", arguments), twins)
    return 0


sys.exit(main())
