package dev.nereid.backend.python.posix;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandle;

/** Functions for pipes. Stateless; for any thread. */
public final class PipeCalls {
    private static final int O_CLOEXEC = 0x80000;
    private static final MethodHandle PIPE2 =
            CLibrary.failing("pipe2", FunctionDescriptor.of(JAVA_INT, ADDRESS, JAVA_INT));
    private static final MethodHandle CLOSE = CLibrary.bind("close", FunctionDescriptor.of(JAVA_INT, JAVA_INT));

    private PipeCalls() {}

    /** The two descriptors of a pipe, owned by the caller. Processes that are started later do not inherit them. */
    public record Pipe(int readEnd, int writeEnd) {}

    /** Creates a pipe, which the caller {@linkplain #close closes}; fails if no descriptor is left. */
    public static Pipe open() throws PosixException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = CLibrary.state(arena);
            MemorySegment ends = arena.allocate(JAVA_INT, 2);
            int result;
            try {
                result = (int) PIPE2.invokeExact(state, ends, O_CLOEXEC);
            } catch (Throwable e) {
                throw CLibrary.notCalled("pipe2", e);
            }
            if (result != 0) {
                throw CLibrary.failure("pipe2", state);
            }
            return new Pipe(ends.getAtIndex(JAVA_INT, 0), ends.getAtIndex(JAVA_INT, 1));
        }
    }

    /** Closes a descriptor that the caller owns. Its number may then be that of another file. */
    public static void close(int descriptor) {
        try {
            int _ = (int) CLOSE.invokeExact(descriptor);
        } catch (Throwable e) {
            throw CLibrary.notCalled("close", e);
        }
    }
}
