package dev.nereid.cuda;

import static dev.nereid.cuda.NativeCalls.call;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * The functions of an opened driver, their results and their errors. Immutable; safe for use by any thread.
 *
 * <p>Results are read after a success alone: a call that fails does not write its result.
 */
final class DriverFunctions {
    private static final int SUCCESS = 0;
    private static final int NAME_SIZE = 256;

    private final MemorySegment[] addresses = new MemorySegment[CudaFunction.values().length];

    /** Opens the driver; fails if it cannot be opened, with the reason, or lacks a function. */
    DriverFunctions(String library) throws IOException {
        SharedLibrary opened = SharedLibrary.open(library);
        for (CudaFunction function : CudaFunction.values()) {
            addresses[function.index()] = opened.find(function.symbol());
        }
    }

    MemorySegment address(CudaFunction function) {
        return addresses[function.index()];
    }

    int intFrom(CudaFunction function, ResultCall call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment result = arena.allocate(ValueLayout.JAVA_INT);
            check(function, call.call(address(function), result.address()));
            return result.get(ValueLayout.JAVA_INT, 0);
        }
    }

    long longFrom(CudaFunction function, ResultCall call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment result = arena.allocate(ValueLayout.JAVA_LONG);
            check(function, call.call(address(function), result.address()));
            return result.get(ValueLayout.JAVA_LONG, 0);
        }
    }

    /** Calls a function that writes two {@code long}s. Returns the one with an index, 0 or 1. */
    long longOfTwo(CudaFunction function, int index, PairCall call) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment results = arena.allocate(ValueLayout.JAVA_LONG, 2);
            check(function, call.call(address(function), results.address(), results.address() + Long.BYTES));
            return results.getAtIndex(ValueLayout.JAVA_LONG, index);
        }
    }

    /** Throws if a call failed. */
    void check(CudaFunction function, int result) {
        check(function, result, "");
    }

    /** Throws if a call failed, with what else is known of it. */
    void check(CudaFunction function, int result, String details) {
        if (result != SUCCESS) {
            throw new CudaException(function.symbol(), result, errorName(result), details);
        }
    }

    @SuppressWarnings("restricted")
    private String errorName(int error) {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment name = arena.allocate(ValueLayout.JAVA_LONG);
            int result = call(address(CudaFunction.GetErrorName), error, name.address());
            return result != SUCCESS
                    ? "(unknown error)"
                    : MemorySegment.ofAddress(name.get(ValueLayout.JAVA_LONG, 0))
                            .reinterpret(NAME_SIZE)
                            .getString(0, StandardCharsets.UTF_8);
        }
    }

    /** A call that writes its result to an address. */
    @FunctionalInterface
    interface ResultCall {
        int call(MemorySegment function, long result);
    }

    /** A call that writes its results to two addresses. */
    @FunctionalInterface
    interface PairCall {
        int call(MemorySegment function, long first, long second);
    }
}
