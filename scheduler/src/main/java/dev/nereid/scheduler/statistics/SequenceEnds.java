package dev.nereid.scheduler.statistics;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.statistics.SequenceEndReason;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** Counts the ended sequences of one model version. Safe for use by any thread. */
public final class SequenceEnds {
    private final Map<SequenceEndReason, AtomicLong> counts = new EnumMap<>(SequenceEndReason.class);

    public SequenceEnds() {
        for (SequenceEndReason reason : SequenceEndReason.values()) {
            counts.put(reason, new AtomicLong());
        }
    }

    public void add(SequenceEndReason reason) {
        requireNonNull(counts.get(reason)).incrementAndGet();
    }

    /** Returns a copy of the number of sequences by reason, without the reasons for which none ended. */
    public Map<SequenceEndReason, Long> counts() {
        Map<SequenceEndReason, Long> read = new EnumMap<>(SequenceEndReason.class);
        counts.forEach((reason, count) -> {
            if (count.get() > 0) {
                read.put(reason, count.get());
            }
        });
        return read;
    }
}
