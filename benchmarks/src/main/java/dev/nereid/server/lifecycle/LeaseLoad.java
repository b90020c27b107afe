package dev.nereid.server.lifecycle;

/** A lease counter, for benchmarks. Safe for use by any thread. */
public final class LeaseLoad {
    private final LeaseCounter leases = new LeaseCounter();

    /**
     * Acquires a lease and releases it, as each request does.
     *
     * @return whether there was one
     */
    public boolean lease() {
        if (!leases.acquire()) {
            return false;
        }
        leases.release();
        return true;
    }
}
