package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

/** What the calls to all models of a server have in flight, and how much that may be. Safe for use by any thread. */
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
