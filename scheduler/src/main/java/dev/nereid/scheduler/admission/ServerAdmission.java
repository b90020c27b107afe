package dev.nereid.scheduler.admission;

import static java.util.Objects.requireNonNull;

/** The load of all models of a server, and its limits. Safe for use by any thread. */
public final class ServerAdmission {
    final BoundedCount requests;
    final BoundedCount bytes;

    /**
     * Creates a load of 0.
     *
     * @param limits the limits of requests and bytes in flight
     */
    public ServerAdmission(AdmissionLimits limits) {
        requireNonNull(limits, "limits");
        requests = new BoundedCount(limits.requests());
        bytes = new BoundedCount(limits.bytes());
    }
}
