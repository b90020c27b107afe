package dev.nereid.scheduler.admission;

import static java.util.Objects.requireNonNull;

/** The load of all models of a server, and its limits. Safe for use by any thread. */
public final class ServerLoad {
    final BoundedCount requests;
    final BoundedCount bytes;

    /**
     * Begins without any call.
     *
     * @param limits how much may be in flight at a time
     */
    public ServerLoad(LoadLimits limits) {
        requireNonNull(limits, "limits");
        requests = new BoundedCount(limits.requests());
        bytes = new BoundedCount(limits.bytes());
    }
}
