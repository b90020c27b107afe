package dev.nereid.server;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.time.Watchdog;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Notices a heap that stays full after collections, also where nobody caught or reported an error: a process that does
 * nothing but collect cannot serve. Confined to the thread of the watchdog, but for {@link #isFull}.
 */
final class HeapWatch implements Watchdog.Watched {
    /** So many looks in a row have to find the heap full, with a collection between each and the next. */
    static final int LOOKS = 10;

    /** Looks that are left out, so that the start does not wait for the beans. */
    static final int SKIPPED = 5;

    /** What is full, in percent of the largest heap. */
    private static final int FULL_PERCENT = 97;

    private static final int PERCENT = 100;

    /** What is known of the heap. */
    interface Heap {
        /** Returns how often the whole heap was collected. */
        long collections();

        /** Returns how many bytes were in use after the last of these collections. */
        long usedAfterCollection();

        /** Returns the largest heap in bytes; below 0 if it is not known. */
        long max();
    }

    private final FatalErrorHandler fatalErrors;
    private final Supplier<Heap> source;
    private final OutOfMemoryError error = new OutOfMemoryError("Java heap space: full after each collection");
    private @Nullable Heap heap;
    private int looks;
    private long collections;
    private int inARow;
    private volatile boolean full;

    /**
     * Watches a heap.
     *
     * @param source makes what is known of the heap, once, on the thread of the watchdog
     * @param fatalErrors is told that the heap is full
     */
    HeapWatch(Supplier<Heap> source, FatalErrorHandler fatalErrors) {
        this.source = source;
        this.fatalErrors = fatalErrors;
    }

    /** Says whether the heap was found full by the last looks. */
    boolean isFull() {
        return full;
    }

    @Override
    public void check(long nowNanos) {
        if (looks < SKIPPED) {
            looks++;
            return;
        }
        if (heap == null) {
            heap = source.get();
        }
        look(heap);
    }

    private void look(Heap known) {
        long before = collections;
        collections = known.collections();
        long max = known.max();
        boolean fullNow =
                collections > before && max > 0 && known.usedAfterCollection() >= max / PERCENT * FULL_PERCENT;
        inARow = fullNow ? inARow + 1 : 0;
        full = inARow >= LOOKS;
        if (inARow == LOOKS) {
            fatalErrors.onFatalError(error);
        }
    }
}
