package dev.nereid.scheduler.admission;

import static java.util.Objects.requireNonNull;

/** Counts requests and bytes in flight up to their limits, for one or all models. Safe for use by any thread. */
public final class AdmissionCounts {
    final BoundedCount requests;
    final BoundedCount bytes;

    /**
     * Creates counts of 0.
     *
     * @param limits the limits of requests and bytes in flight
     */
    public AdmissionCounts(AdmissionLimits limits) {
        requireNonNull(limits, "limits");
        requests = new BoundedCount(limits.requests());
        bytes = new BoundedCount(limits.bytes());
    }
}
