package dev.nereid.backend.python.posix;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.StructLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.List;

/**
 * Binds functions of the C library, and makes exceptions of their errors. Stateless.
 *
 * <p>A function that is bound by {@link #failing} takes memory of {@link #state} as its first argument, into which the error
 * number is written. Such memory is for one call at a time.
 */
final class CLibrary {
    private static final Linker LINKER = Linker.nativeLinker();
    private static final StructLayout STATE = Linker.Option.captureStateLayout();
    private static final VarHandle ERRNO = STATE.varHandle(MemoryLayout.PathElement.groupElement("errno"));
    private static final long MAX_TEXT = 1024;
    private static final MethodHandle STRERROR = bind("strerror", FunctionDescriptor.of(ADDRESS, JAVA_INT));

    private CLibrary() {}

    /** Returns a function that sets no error number; throws {@link IllegalStateException} if it is missing. */
    static MethodHandle bind(String function, FunctionDescriptor descriptor, Linker.Option... options) {
        return handle(function, descriptor, List.of(options));
    }

    /** Returns a function as {@link #bind}; its first argument, memory of {@link #state}, keeps the error number. */
    static MethodHandle failing(String function, FunctionDescriptor descriptor, Linker.Option... options) {
        List<Linker.Option> all = new ArrayList<>(List.of(options));
        all.add(Linker.Option.captureCallState("errno"));
        return handle(function, descriptor, all);
    }

    /** Returns memory for the error number of calls, one at a time. */
    static MemorySegment state(Arena arena) {
        return arena.allocate(STATE);
    }

    /** Returns the error number that the last call with this state has set; meaningful only if the call has failed. */
    static int errno(MemorySegment state) {
        return (int) ERRNO.get(state, 0L);
    }

    /** Returns the exception for a call with this state that has failed. */
    static PosixException failure(String function, MemorySegment state) {
        int errno = errno(state);
        return new PosixException(function, errno, text(errno));
    }

    /** Returns the error for a call that could not be made at all, which only a wrong descriptor brings about. */
    static IllegalStateException notCalled(String function, Throwable cause) {
        return new IllegalStateException(function + ": not called", cause);
    }

    /** Returns the text of the system for an error number. */
    @SuppressWarnings("restricted")
    private static String text(int errno) {
        try {
            MemorySegment text = (MemorySegment) STRERROR.invokeExact(errno);
            return text.address() == 0
                    ? "unknown error"
                    : text.reinterpret(MAX_TEXT).getString(0);
        } catch (Throwable e) {
            throw notCalled("strerror", e);
        }
    }

    @SuppressWarnings("restricted")
    private static MethodHandle handle(String function, FunctionDescriptor descriptor, List<Linker.Option> options) {
        MemorySegment symbol = LINKER.defaultLookup()
                .find(function)
                .orElseThrow(() -> new IllegalStateException(function + ": missing (expected: in the C library)"));
        return LINKER.downcallHandle(symbol, descriptor, options.toArray(Linker.Option[]::new));
    }
}
