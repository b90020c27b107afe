"""Measures two ways to give a model a private array of an input in shared memory: a copy, a copy-on-write mapping."""

import mmap
import os
import time

import numpy as np


def address(mapping):
    return np.frombuffer(mapping, np.uint8).__array_interface__["data"][0]


class Memory:
    """Memory at an address, for ``np.asarray``."""

    def __init__(self, start, count):
        self.__array_interface__ = {"data": (start, False), "shape": (count,), "typestr": "<f4", "version": 3}


def best(function, size):
    count = max(20, min(2000, (1 << 28) // size))
    results = []
    for _ in range(3):
        started = time.perf_counter()
        for _ in range(count):
            function()
        results.append((time.perf_counter() - started) / count * 1e6)
    return min(results)


def measure(size):
    descriptor = os.memfd_create("tensors")
    os.ftruncate(descriptor, size)
    shared = mmap.mmap(descriptor, size)
    private = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
    shared[:] = b"\1" * size
    output = np.empty(size // 4, "f4")
    shared_at, private_at = address(shared), address(private)

    def copied():
        return np.asarray(Memory(shared_at, size // 4)).copy()

    def mapped(use):
        array = np.asarray(Memory(private_at, size // 4))
        use(array)
        del array
        private.madvise(mmap.MADV_DONTNEED)

    def new_mapping(use):
        mapping = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
        array = np.frombuffer(mapping, "f4")
        use(array)
        del array
        mapping.close()

    def read(array):
        array.sum()

    def write_output(array):
        output[:] = array

    def change(array):
        array += 1

    print("%9d bytes" % size, end="")
    for name, use in (("read", read), ("output", write_output), ("change", change)):
        print("  %s: copy %.1f, mapping %.1f, new mapping %.1f" % (
            name, best(lambda: use(copied()), size), best(lambda: mapped(use), size), best(lambda: new_mapping(use), size)),
            end=";")
    print()
    os.close(descriptor)


if __name__ == "__main__":
    for exponent in (12, 14, 16, 18, 20, 22, 24):
        measure(1 << exponent)
