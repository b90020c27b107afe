package dev.nereid.server.memory;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The heap of the C library, from which backends and the JVM allocate. Immutable; safe for use by any thread. */
final class NativeHeap {
    private static final Logger LOG = LoggerFactory.getLogger(NativeHeap.class);
    private static final String FUNCTION = "malloc_trim";

    private final MethodHandle trim;

    private NativeHeap(MethodHandle trim) {
        this.trim = trim;
    }

    /** Finds the heap of the process. Empty if its C library cannot trim it: only the one of GNU can. */
    static Optional<NativeHeap> ofTheProcess() {
        return of(name -> Linker.nativeLinker().defaultLookup().find(name));
    }

    /**
     * Finds the heap of a C library.
     *
     * @param library the library, which may lack the function
     */
    @SuppressWarnings("restricted")
    static Optional<NativeHeap> of(SymbolLookup library) {
        try {
            Optional<MemorySegment> function = library.find(FUNCTION);
            return function.map(address -> new NativeHeap(Linker.nativeLinker()
                    .downcallHandle(address, FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.JAVA_LONG))));
        } catch (UnsupportedOperationException | IllegalCallerException e) {
            LOG.atDebug().setCause(e).log("the Java runtime may not call {}", FUNCTION);
            return Optional.empty();
        }
    }

    /**
     * Returns the pages of freed memory to the operating system. Takes milliseconds; allocations of other threads may
     * wait for it.
     *
     * @return whether there were any
     */
    boolean trim() {
        long kept = 0;
        try {
            return (int) trim.invokeExact(kept) != 0;
        } catch (Throwable e) {
            throw new IllegalStateException(FUNCTION + " could not be called", e);
        }
    }
}
