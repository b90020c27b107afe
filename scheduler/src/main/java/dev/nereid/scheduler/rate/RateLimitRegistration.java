package dev.nereid.scheduler.rate;

/**
 * An instance's registration with the rate limiter. Safe for use by any thread; never blocks.
 *
 * <p>An instance is available, staged, or allocated. It is staged by {@link #stage} when there is work for it,
 * allocated when it is first in the order and the resources for one execution are available, and available again after
 * {@link #release} or {@link #releaseUnused}. Exactly one of these follows every grant.
 */
public interface RateLimitRegistration extends AutoCloseable {
    /** Returns whether permits have to be requested; if not, the other methods need not be called. */
    boolean isLimited();

    /** Returns the load: the executions so far, each times the priority. The lowest load goes first. */
    long load();

    /**
     * Requests a permit. It is granted at once if the instance is available, or else when it becomes so, atomically
     * with its release, so that it competes with all others for the resources that it releases.
     *
     * @param granted run once when the resources are allocated, on the thread that released them, perhaps before this
     *     method returns; short, must not block or throw
     * @throws IllegalStateException if a permit is requested and not granted yet, or if the registration is closed
     */
    void stage(Runnable granted);

    /**
     * Ends an execution: counts it, releases its resources, and grants the next permits.
     *
     * @throws IllegalStateException if no permit is granted
     */
    void release();

    /**
     * Releases a permit without an execution; it is not counted.
     *
     * @throws IllegalStateException if no permit is granted
     */
    void releaseUnused();

    /**
     * Deregisters the instance; a requested permit is not granted any more. The resources of an execution are released
     * at its end. Later calls have no effect.
     */
    @Override
    void close();
}
