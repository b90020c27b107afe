package dev.nereid.server.memory;

import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.util.Optional;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Returns memory that backends have freed to the operating system. Safe for use by any thread; never blocks.
 *
 * <p>The C library keeps freed memory for later allocations, so that the process would stay as large after the unload
 * of a model as it was before. Returning it takes time that grows with the heap, and other threads may wait meanwhile.
 * It is therefore done once for all memory that is freed within a second, on a separate thread, and for a small share
 * of the time.
 */
public final class NativeHeapTrimmer implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(NativeHeapTrimmer.class);
    private static final long DELAY_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The pause after a trim is at least so many times as long as the trim. */
    private static final long PAUSE_FACTOR = 50;

    private final Runnable trim;
    private final LongSupplier nanoTime;
    private final Executor threads;
    private final Timeout timeout;
    private final AtomicBoolean trimming = new AtomicBoolean();

    /** When the next trim may begin. Written by the trimming thread. */
    private volatile long nextNanos;

    /**
     * Creates a trimmer.
     *
     * @param trim returns freed memory; may take long
     * @param threads runs the trims
     */
    NativeHeapTrimmer(Runnable trim, LongSupplier nanoTime, Timer timer, Executor threads) {
        this.trim = trim;
        this.nanoTime = nanoTime;
        this.threads = threads;
        nextNanos = nanoTime.getAsLong();
        timeout = timer.newTimeout(this::begin);
    }

    /** Creates the trimmer of the process, which does nothing if its C library cannot trim. */
    public static NativeHeapTrimmer ofTheProcess(LongSupplier nanoTime, Timer timer) {
        return new NativeHeapTrimmer(
                // Looked up by each trim, so that the start does not wait for it.
                () -> NativeHeap.ofTheProcess().ifPresent(NativeHeap::trim),
                nanoTime,
                timer,
                // A platform thread, since a virtual one would keep its carrier meanwhile.
                task -> Thread.ofPlatform().daemon().name("trim").start(task));
    }

    /** Returns freed memory soon. Called after a backend has freed much. */
    public void freed() {
        long soon = nanoTime.getAsLong() + DELAY_NANOS;
        long next = nextNanos;
        timeout.scheduleAtLatest(next - soon > 0 ? next : soon);
    }

    private void begin() {
        if (trimming.compareAndSet(false, true)) {
            threads.execute(this::trim);
        } else {
            freed();
        }
    }

    private void trim() {
        long started = nanoTime.getAsLong();
        try {
            trim.run();
        } finally {
            long ended = nanoTime.getAsLong();
            nextNanos = ended + PAUSE_FACTOR * (ended - started);
            trimming.set(false);
        }
    }

    /** Begins no further trim. */
    @Override
    public void close() {
        timeout.close();
    }

    /** The heap of the C library, from which backends and the JVM allocate. Immutable; safe for use by any thread. */
    static final class NativeHeap {
        private static final String FUNCTION = "malloc_trim";

        private final MethodHandle trim;

        private NativeHeap(MethodHandle trim) {
            this.trim = trim;
        }

        /** Finds the heap of the process. Empty if its C library cannot trim it: only the one of GNU can. */
        static Optional<NativeHeap> ofTheProcess() {
            return of(name -> Linker.nativeLinker().defaultLookup().find(name));
        }

        /** Finds the heap of a C library, which may lack the function. */
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
}
