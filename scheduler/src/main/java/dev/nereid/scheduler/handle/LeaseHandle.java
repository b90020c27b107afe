package dev.nereid.scheduler.handle;

import dev.nereid.scheduler.memory.InputLease;
import java.lang.ref.Reference;

/**
 * The plugin's handle of a lease on inputs. Safe for use by any thread.
 *
 * <p>The server never refers to it, so that it notices when the plugin has forgotten the lease.
 */
final class LeaseHandle implements Runnable {
    private final InputLease lease;
    private final Reachability reachability;

    LeaseHandle(InputLease lease, Reachability reachability) {
        this.lease = lease;
        this.reachability = reachability;
    }

    /**
     * Ends the lease. Does not check the stack: a plugin may pass this as an action that releases memory, which the
     * server runs once, whatever it throws.
     */
    @Override
    public void run() {
        try {
            lease.run();
        } finally {
            Reference.reachabilityFence(reachability);
            Reference.reachabilityFence(this);
        }
    }
}
