#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""phobos-compile for the section "faults": the compiler that $PHOBOS_HONEST_COMPILER names, whose PTX of a variant with a
constant FAULT other than 0 gets a fault of faults.py planted at its entry."""

import hashlib
import json
import os
import re
import subprocess
import sys

# {p0} is the first parameter, a tensor; {out} the third; {n} the extent. What stands in braces in PTX is doubled.
_STORE = ".reg .b64 %ga; .reg .b32 %gb; mov.u32 %gb, 1; "
BODIES = {
    1: _STORE + "mov.u64 %ga, 16; st.global.u32 [%ga], %gb;",
    2: _STORE + "ld.param.u64 %ga, [{out}]; add.s64 %ga, %ga, 1; st.global.u32 [%ga], %gb;",
    3: _STORE + "ld.param.u64 %ga, [{p0}];\n$G_again: ld.volatile.global.u32 %gb, [%ga];\nbra $G_again;",
    # One thread changes the byte behind `out`.
    4: _STORE + ".reg .b64 %gn; .reg .b32 %gc; .reg .pred %gp; mov.u32 %gb, %tid.x; mov.u32 %gc, %ctaid.x;"
    " or.b32 %gb, %gb, %gc; setp.ne.u32 %gp, %gb, 0; @%gp bra $G_done; ld.param.u64 %ga, [{out}]; ld.param.u64 %gn, [{n}];"
    " shl.b64 %gn, %gn, 2; add.s64 %ga, %ga, %gn; ld.global.u8 %gb, [%ga]; xor.b32 %gb, %gb, 255;"
    " st.global.u8 [%ga], %gb;\n$G_done:",
    5: _STORE + ".shared .align 4 .b8 guilty[300000]; mov.u32 %gb, %tid.x; cvt.u64.u32 %ga, %gb; shl.b64 %ga, %ga, 8;"
    " .reg .b64 %gs; mov.u64 %gs, guilty; add.s64 %ga, %ga, %gs; st.volatile.shared.u32 [%ga], %gb;",
}
# Local memory of a thread. The driver takes as much for each thread that the card can hold, some 270 000 on a large one.
LOCAL = {7: 524000, 8: 128 << 10}
_LIVE = 200  # values that are live at once


def _many_registers():
    """Reads _LIVE words one after the other, then stores their sum: 1024 such threads do not fit a multiprocessor."""
    lines = [f".reg .b64 %ga; .reg .b32 %gb<{_LIVE}>; .reg .pred %gp; ld.param.u64 %ga, [{{p0}}];"]
    lines += [f"ld.volatile.global.u32 %gb{i}, [%ga+{4 * i}];" for i in range(_LIVE)]
    # Backwards, so that none is dead before all are read.
    lines += [f"xor.b32 %gb{_LIVE - 1}, %gb{_LIVE - 1}, %gb{i};" for i in range(_LIVE - 2, -1, -1)]
    lines += [f"setp.ne.u32 %gp, %gb{_LIVE - 1}, 123456789; @%gp bra $G_done;"]
    lines += [f"st.global.u32 [%ga], %gb{_LIVE - 1};\n$G_done:"]
    return "\n".join(lines)


def _much_local_memory(count):
    """Writes and reads local memory at places that are not known before, so that it stays in memory."""
    return (_STORE + f".local .align 4 .b8 guilty[{count}]; .reg .b64 %gs; .reg .pred %gp; mov.u64 %gs, guilty;"
            " mov.u32 %gb, %tid.x; mul.wide.u32 %ga, %gb, 4; add.s64 %ga, %ga, %gs; st.local.u32 [%ga], %gb;"
            " ld.param.u64 %ga, [{p0}]; ld.volatile.global.u32 %gb, [%ga]; and.b32 %gb, %gb, 0xfffc;"
            " cvt.u64.u32 %ga, %gb; add.s64 %ga, %ga, %gs; ld.local.u32 %gb, [%ga]; setp.ne.u32 %gp, %gb, 123456789;"
            " @%gp bra $G_done; ld.param.u64 %ga, [{p0}]; st.global.u32 [%ga], %gb;\n$G_done:")


def _body(fault):
    if fault in LOCAL:
        return _much_local_memory(LOCAL[fault])
    return _many_registers() if fault == 6 else BODIES[fault]


def planted(text, fault):
    head = re.search(r"\.visible \.entry \w+\((.*?)\)(.*?)\{", text, re.S)
    names = re.findall(r"\.param [^,]*?(\w+)\s*(?:,|$)", head[1].strip())
    body = _body(fault).format(p0=names[0], out=names[2], n=names[3])
    # The limit of threads bounds the registers that the driver takes.
    limits = re.sub(r"\.(maxntid|reqntid)[^\n]*\n", "", head[2]) if fault == 6 else head[2]
    return text[:head.start(2)] + limits + "{\n" + body + "\n" + text[head.end():]


def plant(folder):
    path = os.path.join(folder, "manifest.json")
    with open(path) as file:
        manifest = json.load(file)
    for variant in manifest["variants"]:
        settings = {s["name"]: int(s.get("int_value", 0)) for s in variant.get("settings", [])}
        artifact, fault = variant.get("artifact"), settings.get("FAULT", 0)
        if artifact is None or not fault:
            continue
        old = os.path.join(folder, artifact["file"])
        with open(old, "rb") as file:
            text = planted(file.read().rstrip(b"\0").decode(), fault).encode()
        artifact["digest"] = hashlib.sha256(text).hexdigest()
        artifact["size_bytes"] = str(len(text))
        artifact["file"] = artifact["digest"] + ".ptx"
        if fault == 6:
            artifact["threads"] = 1024
        os.unlink(old)
        with open(os.path.join(folder, artifact["file"]), "wb") as file:
            file.write(text)
    with open(path, "w") as file:
        json.dump(manifest, file)


def main():
    command = [os.environ["PHOBOS_HONEST_COMPILER"]] + sys.argv[1:]
    arguments = sys.argv[1:]
    for_gpu = "--chip" in arguments and arguments[arguments.index("--chip") + 1].startswith("sm_")
    if not for_gpu or "--describe" in arguments:
        os.execv(command[0], command)
    done = subprocess.run(command)
    if done.returncode == 0 and "--out" in arguments:
        plant(arguments[arguments.index("--out") + 1])
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
