# SPDX-License-Identifier: Apache-2.0
"""As much of the CUDA driver as run_bundle.py needs, by ctypes."""

import ctypes
import os


class Driver:
    """The first device's primary context. Calls that fail raise RuntimeError with the call's name."""

    def __init__(self):
        self._library = ctypes.CDLL(os.environ.get("PHOBOS_CUDA_LIBRARY", "libcuda.so.1"))
        self("cuInit", 0)
        device = ctypes.c_int()
        self("cuDeviceGet", ctypes.byref(device), 0)
        context = ctypes.c_void_p()
        self("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self("cuCtxPushCurrent_v2", context)
        self.l2_bytes = self._attribute(38, device)
        name = ctypes.create_string_buffer(100)
        self("cuDeviceGetName", name, 100, device)
        self.name = name.value.decode()

    def __call__(self, function, *arguments):
        result = getattr(self._library, function)(*arguments)
        if result != 0:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(result, ctypes.byref(text))
            raise RuntimeError(f"{function}: {text.value.decode() if text.value else result}")

    def _attribute(self, number, device):
        value = ctypes.c_int()
        self("cuDeviceGetAttribute", ctypes.byref(value), number, device)
        return value.value

    def load(self, ptx, entry):
        """The kernel `entry` of a PTX text; the driver's complaint, if it has one."""
        log = ctypes.create_string_buffer(8192)
        options = (ctypes.c_int * 2)(5, 6)  # CU_JIT_ERROR_LOG_BUFFER, its size
        values = (ctypes.c_void_p * 2)(ctypes.cast(log, ctypes.c_void_p), ctypes.c_void_p(8192))
        module = ctypes.c_void_p()
        try:
            self("cuModuleLoadDataEx", ctypes.byref(module), ctypes.c_char_p(ptx), 2, options, values)
        except RuntimeError as error:
            raise RuntimeError(f"{error}: {log.value.decode()}") from None
        function = ctypes.c_void_p()
        self("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def allocate(self, count):
        address = ctypes.c_uint64()
        self("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(count, 1)))
        return address.value

    def free_bytes(self):
        """What the card has left, for all processes."""
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value

    def free(self, address):
        self("cuMemFree_v2", ctypes.c_uint64(address))

    def copy(self, to, source, count):
        self("cuMemcpyAsync", ctypes.c_uint64(to), ctypes.c_uint64(source), ctypes.c_size_t(count), None)
        self.synchronize()

    def upload(self, address, array):
        self.copy(address, array.ctypes.data, array.nbytes)

    def download(self, array, address):
        self.copy(array.ctypes.data, address, array.nbytes)

    def launch(self, function, grid, threads, slots, shared_bytes=0):
        """`slots`: a ctypes array of uint64, one a parameter; `shared_bytes`: of a block, on top of what the PTX declares."""
        if shared_bytes:
            self("cuFuncSetAttribute", function, 8, shared_bytes)  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        count = ctypes.c_size_t(ctypes.sizeof(slots))
        extra = (ctypes.c_void_p * 5)(1, ctypes.addressof(slots), 2, ctypes.addressof(count), 0)  # buffer, its size, end
        self("cuLaunchKernel", function, *grid, threads, 1, 1, shared_bytes, None, None, extra)

    def synchronize(self):
        self("cuStreamSynchronize", None)

    def event(self):
        event = ctypes.c_void_p()
        self("cuEventCreate", ctypes.byref(event), 0)
        return event

    def record(self, event):
        self("cuEventRecord", event, None)

    def microseconds(self, begin, end):
        self.synchronize()
        milliseconds = ctypes.c_float()
        self("cuEventElapsedTime", ctypes.byref(milliseconds), begin, end)
        return 1000 * milliseconds.value

    def fill(self, address, count, value):
        self("cuMemsetD32Async", ctypes.c_uint64(address), ctypes.c_uint(value), ctypes.c_size_t(count // 4), None)
