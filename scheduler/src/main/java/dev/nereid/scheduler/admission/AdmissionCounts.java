package dev.nereid.scheduler.admission;

import static java.util.Objects.requireNonNull;

/** Counts the requests and bytes in flight, of a model or of all models, up to their limits. Safe for use by any thread. */
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
