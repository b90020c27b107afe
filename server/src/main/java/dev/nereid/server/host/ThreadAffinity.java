package dev.nereid.server.host;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemoryLayout;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.VarHandle;
import java.util.Optional;

/**
 * Binds threads to processors by {@code sched_setaffinity} of Linux. Reports an error on other systems. Immutable;
 * safe for use by any thread.
 */
final class ThreadAffinity {
    private static final String FUNCTION = "sched_setaffinity";
    private static final String ERRNO = "errno";

    private final SymbolLookup library;

    /** Looks up the function of the operating system in a library, which may lack it. */
    ThreadAffinity(SymbolLookup library) {
        this.library = library;
    }

    /** Uses the library of the operating system. */
    static ThreadAffinity ofTheSystem() {
        return new ThreadAffinity(name -> Linker.nativeLinker().defaultLookup().find(name));
    }

    /**
     * Binds the calling thread, and threads that it starts from then on, to processors.
     *
     * @return the reason if that is not possible; empty if it is done
     */
    Optional<String> bind(CpuSet processors) {
        try {
            Optional<MemorySegment> function = library.find(FUNCTION);
            if (function.isEmpty()) {
                return Optional.of("this operating system has no " + FUNCTION);
            }
            int error = invoke(function.get(), processors.words());
            return error == 0 ? Optional.empty() : Optional.of(FUNCTION + " failed with error " + error);
        } catch (UnsupportedOperationException | IllegalCallerException e) {
            return Optional.of("the Java runtime may not call " + FUNCTION + ": " + e.getMessage());
        }
    }

    @SuppressWarnings("restricted")
    private static int invoke(MemorySegment function, long[] words) {
        MethodHandle handle = Linker.nativeLinker()
                .downcallHandle(
                        function,
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT, ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG, ValueLayout.ADDRESS),
                        Linker.Option.captureCallState(ERRNO));
        MemoryLayout layout = Linker.Option.captureStateLayout();
        VarHandle errorNumber = layout.varHandle(MemoryLayout.PathElement.groupElement(ERRNO));
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment state = arena.allocate(layout);
            MemorySegment mask = arena.allocateFrom(ValueLayout.JAVA_LONG, words);
            int thisThread = 0;
            int result = (int) handle.invokeExact(state, thisThread, mask.byteSize(), mask);
            return result == 0 ? 0 : (int) errorNumber.get(state, 0L);
        } catch (Throwable e) {
            throw new IllegalStateException(FUNCTION + " could not be called", e);
        }
    }
}
