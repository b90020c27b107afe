package dev.nereid.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/**
 * Calls of C functions that return an {@code int}: one handle for each list of parameters, for whatever function has
 * it. A {@code long} is a pointer, a handle or a size. Stateless; safe for use by any thread.
 */
final class NativeCalls {
    private static final MethodHandle NOTHING = link();
    private static final MethodHandle INT = link(JAVA_INT);
    private static final MethodHandle INT_LONG = link(JAVA_INT, JAVA_LONG);
    private static final MethodHandle LONG = link(JAVA_LONG);
    private static final MethodHandle LONG_INT = link(JAVA_LONG, JAVA_INT);
    private static final MethodHandle LONG_INT_INT = link(JAVA_LONG, JAVA_INT, JAVA_INT);
    private static final MethodHandle LONG_LONG = link(JAVA_LONG, JAVA_LONG);
    private static final MethodHandle LONG_LONG_INT = link(JAVA_LONG, JAVA_LONG, JAVA_INT);
    private static final MethodHandle LONG_LONG_LONG_LONG = link(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle LONG_BYTE_LONG_LONG = link(JAVA_LONG, JAVA_BYTE, JAVA_LONG, JAVA_LONG);

    private static final MethodHandle LONG_LONG_LONG = link(JAVA_LONG, JAVA_LONG, JAVA_LONG);
    private static final MethodHandle SIX_LONGS =
            link(JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG);

    private static final MethodHandle LONG_LONG_INT_LONG_LONG =
            link(JAVA_LONG, JAVA_LONG, JAVA_INT, JAVA_LONG, JAVA_LONG);

    /** {@code cuLaunchKernel}: the kernel, three sizes each of grid and block, shared memory, stream and parameters. */
    private static final MethodHandle LAUNCH = link(
            JAVA_LONG, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_INT, JAVA_LONG, JAVA_LONG,
            JAVA_LONG);

    /** A handle by value: a structure of 64 bytes. */
    private static final MethodHandle OPEN = link(
            JAVA_LONG,
            MemoryLayout.structLayout(MemoryLayout.sequenceLayout(CudaDriver.IPC_HANDLE_SIZE, JAVA_BYTE)),
            JAVA_INT);

    private NativeCalls() {}

    static int call(MemorySegment function) {
        try {
            return (int) NOTHING.invokeExact(function);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, int a) {
        try {
            return (int) INT.invokeExact(function, a);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, int a, long b) {
        try {
            return (int) INT_LONG.invokeExact(function, a, b);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a) {
        try {
            return (int) LONG.invokeExact(function, a);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, int b) {
        try {
            return (int) LONG_INT.invokeExact(function, a, b);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, int b, int c) {
        try {
            return (int) LONG_INT_INT.invokeExact(function, a, b, c);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, long b) {
        try {
            return (int) LONG_LONG.invokeExact(function, a, b);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, long b, int c) {
        try {
            return (int) LONG_LONG_INT.invokeExact(function, a, b, c);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, long b, long c, long d) {
        try {
            return (int) LONG_LONG_LONG_LONG.invokeExact(function, a, b, c, d);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, byte b, long c, long d) {
        try {
            return (int) LONG_BYTE_LONG_LONG.invokeExact(function, a, b, c, d);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, long b, long c) {
        try {
            return (int) LONG_LONG_LONG.invokeExact(function, a, b, c);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    static int call(MemorySegment function, long a, long b, int c, long d, long e) {
        try {
            return (int) LONG_LONG_INT_LONG_LONG.invokeExact(function, a, b, c, d, e);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    static int call(MemorySegment function, long a, long b, long c, long d, long e, long f) {
        try {
            return (int) SIX_LONGS.invokeExact(function, a, b, c, d, e, f);
        } catch (Throwable t) {
            throw notCalled(t);
        }
    }

    /** Calls {@code cuLaunchKernel} for a grid of one dimension, without dynamic shared memory. */
    static int launch(MemorySegment launch, long kernel, int blocks, int threads, long stream, long parameters) {
        try {
            return (int) LAUNCH.invokeExact(launch, kernel, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, 0L);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    /** Calls {@code cuIpcOpenMemHandle_v2}. */
    static int open(MemorySegment open, long result, MemorySegment handle, int flags) {
        try {
            return (int) OPEN.invokeExact(open, result, handle, flags);
        } catch (Throwable e) {
            throw notCalled(e);
        }
    }

    private static IllegalStateException notCalled(Throwable e) {
        return new IllegalStateException("native function: not called", e);
    }

    @SuppressWarnings("restricted")
    private static MethodHandle link(MemoryLayout... parameters) {
        return Linker.nativeLinker().downcallHandle(FunctionDescriptor.of(JAVA_INT, parameters));
    }
}
