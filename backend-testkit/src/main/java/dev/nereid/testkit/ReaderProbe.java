package dev.nereid.testkit;

import com.sun.management.ThreadMXBean;
import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorMemory;
import java.lang.management.ManagementFactory;
import java.util.function.Consumer;

/**
 * Tests a parser with hostile bytes: time, heap and tensor memory stay bounded. Immutable.
 *
 * <p>It may refuse them with an {@link InferenceException}, and throw nothing else. It takes no more memory than its
 * input can call for, neither for tensors nor on the heap, gives all tensor memory back, and comes to an end.
 */
public final class ReaderProbe {
    private static final ThreadMXBean THREADS = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    private static final long NANOS_PER_SECOND = 1_000_000_000;
    /** Far more than any input of a test needs, on the slowest machine. */
    private static final long MAX_SECONDS = 10;

    private static final int ATTEMPTS = 3;

    private final long memoryLimit;
    private final long heapLimit;

    /**
     * Creates a probe.
     *
     * @param memoryLimit the most tensor memory that may be wanted at a time, in bytes
     * @param heapLimit the most that may be taken from the heap in all, in bytes
     */
    public ReaderProbe(long memoryLimit, long heapLimit) {
        this.memoryLimit = memoryLimit;
        this.heapLimit = heapLimit;
    }

    /**
     * Reads once, on the calling thread.
     *
     * @param reader takes its tensor memory from the argument, and gives it back
     * @throws AssertionError if the reader took too much of anything, or did not give it back
     */
    public void run(Consumer<TensorMemory> reader) {
        long allocated = Long.MAX_VALUE;
        // Classes that are loaded on the way cost heap too, once.
        for (int attempt = 0; attempt < ATTEMPTS && allocated > heapLimit; attempt++) {
            allocated = read(reader);
        }
        check("heap", allocated, heapLimit);
    }

    /** Reads, and returns how much heap it took. */
    private long read(Consumer<TensorMemory> reader) {
        try (LeakCheckingMemory memory = new LeakCheckingMemory(memoryLimit)) {
            long start = System.nanoTime();
            long before = THREADS.getCurrentThreadAllocatedBytes();
            try {
                reader.accept(memory);
            } catch (InferenceException refusal) {
                if (refusal.publicMessage().isEmpty()) {
                    throw new AssertionError("refused without a word", refusal);
                }
            }
            long allocated = THREADS.getCurrentThreadAllocatedBytes() - before;
            check("seconds", (System.nanoTime() - start) / NANOS_PER_SECOND, MAX_SECONDS);
            check("tensor memory", memory.maxBytesRequested(), memoryLimit);
            return allocated;
        }
    }

    private static void check(String what, long value, long limit) {
        if (value > limit) {
            throw new AssertionError(what + ": " + value + " (expected: at most " + limit + ")");
        }
    }
}
