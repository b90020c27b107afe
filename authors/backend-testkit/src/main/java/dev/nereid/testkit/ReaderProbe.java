package dev.nereid.testkit;

import com.sun.management.ThreadMXBean;
import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorMemory;
import java.lang.management.ManagementFactory;
import java.util.function.Consumer;

/**
 * Tests a parser with hostile bytes: time, heap and tensor memory stay bounded. Immutable.
 *
 * <p>The parser may refuse them with an {@link InferenceException}, and throw nothing else. It allocates no more memory
 * than its input justifies, for tensors or on the heap, releases all tensor memory, and ends.
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
     * @param memoryLimit the limit on tensor memory that is requested at a time, in bytes
     * @param heapLimit the limit on all allocations on the heap, in bytes
     */
    public ReaderProbe(long memoryLimit, long heapLimit) {
        this.memoryLimit = memoryLimit;
        this.heapLimit = heapLimit;
    }

    /**
     * Runs a parser on the calling thread.
     *
     * @param reader the parser, which allocates tensor memory from its argument and releases it
     * @throws AssertionError if the parser exceeds a limit, or does not release its memory
     */
    public void run(Consumer<TensorMemory> reader) {
        long allocated = Long.MAX_VALUE;
        // The loading of classes allocates too, once.
        for (int attempt = 0; attempt < ATTEMPTS && allocated > heapLimit; attempt++) {
            allocated = read(reader);
        }
        check("heap", allocated, heapLimit);
    }

    /** Runs the parser, and returns the bytes that it allocated on the heap. */
    private long read(Consumer<TensorMemory> reader) {
        try (LeakCheckingMemory memory = new LeakCheckingMemory(memoryLimit)) {
            long start = System.nanoTime();
            long before = THREADS.getCurrentThreadAllocatedBytes();
            try {
                reader.accept(memory);
            } catch (InferenceException refusal) {
                if (refusal.publicMessage().isEmpty()) {
                    throw new AssertionError("refused without a message", refusal);
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
