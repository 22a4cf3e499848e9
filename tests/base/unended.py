#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""unended.py FILE: a process that nobody can collect once it has ended, as one that hangs in a driver's call, until FILE
is there. It makes FILE.held when that is so (with text in it: why it cannot be had), closes what it has open, and ends.

A debugger in a session of its own holds it: only who traces a process may collect it.
"""

import ctypes
import os
import sys
import time

PR_SET_PTRACER = 0x59616D61
PTRACE_SEIZE = 0x4206
MOST_SECONDS = 60


def hold(file, held):
    os.setsid()
    os.closerange(3, 256)
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4
    seized = libc.ptrace(PTRACE_SEIZE, os.getppid(), 0, 0) == 0
    with open(f"{held}.new", "w") as f:
        f.write("" if seized else os.strerror(ctypes.get_errno()))
    os.rename(f"{held}.new", held)
    end = time.monotonic() + MOST_SECONDS
    while seized and not os.path.exists(file) and time.monotonic() < end:
        time.sleep(0.01)
    os._exit(0)


file = sys.argv[1]
held = f"{file}.held"
libc = ctypes.CDLL(None)
libc.prctl.argtypes = [ctypes.c_int, ctypes.c_ulong]
libc.prctl(PR_SET_PTRACER, ctypes.c_ulong(-1).value)
if os.fork() == 0:
    hold(file, held)
while not os.path.exists(held):
    time.sleep(0.01)
os._exit(0)
