package dev.nereid.scheduler.statistics;

import dev.nereid.api.statistics.SequenceEndReason;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLongArray;

/** Counts the sequences of one model version that ended. Safe for use by any thread. */
public final class SequenceEnds {
    private static final SequenceEndReason[] REASONS = SequenceEndReason.values();

    private final AtomicLongArray counts = new AtomicLongArray(REASONS.length);

    /** Creates counts of zero. */
    public SequenceEnds() {}

    /**
     * Adds a sequence.
     *
     * @param reason why it ended
     */
    public void add(SequenceEndReason reason) {
        counts.incrementAndGet(reason.ordinal());
    }

    /**
     * Returns the number of sequences by reason.
     *
     * @return a copy, without the reasons for which none ended
     */
    public Map<SequenceEndReason, Long> counts() {
        Map<SequenceEndReason, Long> read = new EnumMap<>(SequenceEndReason.class);
        for (SequenceEndReason reason : REASONS) {
            long count = counts.get(reason.ordinal());
            if (count > 0) {
                read.put(reason, count);
            }
        }
        return read;
    }
}
