package dev.nereid.server.response;

import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;

/** How many of one kind a plugin has forgotten, and how many of them were reported. Safe for use by any thread. */
public final class ForgottenCount {
    private final AtomicLong forgotten = new AtomicLong();
    private final AtomicLong reported = new AtomicLong();
    private final AtomicBoolean placeReported = new AtomicBoolean();

    /** Creates a count of nothing. */
    public ForgottenCount() {}

    /**
     * Returns whether places are worth recording: one was forgotten, and none with a place.
     *
     * @return whether they are
     */
    public boolean needsPlace() {
        return forgotten.get() > 0 && !placeReported.get();
    }

    /**
     * Counts one.
     *
     * @param place where the plugin got it; {@code null} if that was not recorded
     * @return whether to report it: the first one is reported, and the first one with a place
     */
    public boolean add(@Nullable Throwable place) {
        boolean isFirst = forgotten.getAndIncrement() == 0;
        boolean showsPlace = place != null && placeReported.compareAndSet(false, true);
        if (isFirst || showsPlace) {
            reported.getAndIncrement();
            return true;
        }
        return false;
    }

    /**
     * Returns how many were forgotten in all, for a last report.
     *
     * @return their number; 0 if each was reported
     */
    public long total() {
        long number = forgotten.get();
        return number > reported.get() ? number : 0;
    }
}
