package dev.nereid.backend.python.posix;

/** Functions for shared memory. */
public final class MemoryCalls {
    private MemoryCalls() {}
}
