package dev.nereid.server;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.time.Watchdog;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Detects a heap that stays full after collections. Works without an error that was caught or reported. Confined to
 * the thread of the watchdog.
 */
final class HeapWatch implements Watchdog.Watched {
    /**
     * The number of consecutive checks that have to find the heap full. There is a collection between each and the
     * next.
     */
    static final int MIN_FULL_CHECKS = 10;

    /** Looks that are left out, so that the start does not wait for the beans. */
    static final int SKIPPED_CHECKS = 5;

    /** The part of the largest heap from which on it is full, in percent. */
    private static final int FULL_PERCENT = 97;

    private static final int PERCENT = 100;

    /** Statistics of the heap. */
    interface Heap {
        /** Returns how often the whole heap was collected. */
        long collections();

        /** Returns how many bytes were in use after the last of these collections. */
        long usedAfterCollection();

        /** Returns the largest heap in bytes; below 0 if it is unknown. */
        long max();
    }

    private final FatalErrorHandler fatalErrors;
    private final Supplier<Heap> source;
    private final OutOfMemoryError error = new OutOfMemoryError("Java heap space: full after each collection");
    private @Nullable Heap heap;
    private int checks;
    private long collections;
    private int consecutiveFull;

    /**
     * Watches a heap.
     *
     * @param source reads the statistics of the heap; called once, on the thread of the watchdog
     * @param fatalErrors notified that the heap is full
     */
    HeapWatch(Supplier<Heap> source, FatalErrorHandler fatalErrors) {
        this.source = source;
        this.fatalErrors = fatalErrors;
    }

    @Override
    public void check(long nowNanos) {
        if (checks < SKIPPED_CHECKS) {
            checks++;
            return;
        }
        if (heap == null) {
            heap = source.get();
        }
        evaluate(heap);
    }

    private void evaluate(Heap current) {
        long before = collections;
        collections = current.collections();
        long max = current.max();
        boolean fullNow =
                collections > before && max > 0 && current.usedAfterCollection() >= max / PERCENT * FULL_PERCENT;
        consecutiveFull = fullNow ? consecutiveFull + 1 : 0;
        if (consecutiveFull == MIN_FULL_CHECKS) {
            fatalErrors.onFatalError(error);
        }
    }
}
