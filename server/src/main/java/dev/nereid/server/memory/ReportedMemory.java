package dev.nereid.server.memory;

import dev.nereid.spi.MemoryUsage;
import java.util.List;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;

/**
 * The memory that a backend reports for one loaded model version. Safe for use by any thread; never blocks.
 *
 * <p>One refresh at a time is in progress, and a second passes from the begin of one refresh to the begin of the next.
 */
public final class ReportedMemory {
    /** How long a value is not refreshed. */
    public static final long MIN_AGE_NANOS = 1_000_000_000L;

    /** How long a refresh takes before it is logged as slow. */
    static final long SLOW_NANOS = 10 * MIN_AGE_NANOS;

    /** The largest sum of a model: a pebibyte, so that sums of models do not overflow. */
    static final long MAX_BYTES = 1L << 50;

    /** The state of a refresh. */
    private enum Phase {
        NONE,
        /** Waits for a thread. */
        QUEUED,
        /** The backend is called, with a lease on the version. */
        CALLING
    }

    private final AtomicReference<Phase> phase = new AtomicReference<>(Phase.NONE);
    private final AtomicBoolean logged = new AtomicBoolean();
    private volatile List<MemoryUsage> latest;

    /** When the last refresh began; written by the thread that begins one. */
    private volatile long begunNanos;

    /** Creates the memory of a version, which its backend reported at a time after the load. */
    public ReportedMemory(List<MemoryUsage> reported, long nanos) {
        latest = List.copyOf(reported);
        begunNanos = nanos;
    }

    /** Returns the newest report by place; empty if the backend reports none. */
    public List<MemoryUsage> latest() {
        return latest;
    }

    /** Returns the bytes of the newest report in all places, at most a pebibyte; 0 if the backend reports none. */
    public long byteSize() {
        long sum = 0;
        for (MemoryUsage usage : latest) {
            sum = Math.min(MAX_BYTES, sum + Math.min(MAX_BYTES, usage.byteSize()));
        }
        return sum;
    }

    /**
     * Begins a refresh, if one is due; returns whether the caller refreshes, and ends by {@link #end}.
     *
     * @param nanos the time, on the scale of that of the creation
     */
    public boolean begin(long nanos) {
        if (nanos - begunNanos < MIN_AGE_NANOS || !phase.compareAndSet(Phase.NONE, Phase.QUEUED)) {
            return false;
        }
        if (nanos - begunNanos < MIN_AGE_NANOS) { // another thread's refresh began and ended meanwhile
            phase.set(Phase.NONE);
            return false;
        }
        begunNanos = nanos;
        return true;
    }

    /** Records that the backend is called from now on. */
    public void calling(long nanos) {
        begunNanos = nanos;
        phase.set(Phase.CALLING);
    }

    /** Replaces the report. */
    public void update(List<MemoryUsage> reported) {
        latest = List.copyOf(reported);
    }

    /** Ends a refresh, successful or not. */
    public void end() {
        phase.set(Phase.NONE);
    }

    /** Returns whether the backend is called at this moment: a refresh has a lease on the version. */
    public boolean isCalling() {
        return phase.get() == Phase.CALLING;
    }

    /** Returns whether a refresh takes too long: the backend has not answered for ten seconds. */
    public boolean isSlow(long nanos) {
        return isCalling() && nanos - begunNanos >= SLOW_NANOS;
    }

    /** Claims the log line about failed or slow refreshes; returns whether nothing was logged before. */
    public boolean claimLog() {
        return logged.compareAndSet(false, true);
    }
}
