package dev.nereid.scheduler.rate;

/**
 * An instance's registration with the rate limiter. Safe for use by any thread; never blocks.
 *
 * <p>An instance is available, staged, or allocated. It is staged by {@link #stage} when there is work for it,
 * allocated when the resources for one execution are there and it is its turn, and available again after
 * {@link #release} or {@link #releaseUnused}, of which every grant is followed by exactly one.
 */
public interface RateLimitRegistration extends AutoCloseable {
    /**
     * Says whether turns are to be asked for.
     *
     * @return {@code false} if the other methods need not be called
     */
    boolean isLimited();

    /**
     * Tells how much the instance has had: the executions so far, each times the priority. Less goes first.
     *
     * @return the number at this moment
     */
    long load();

    /**
     * Asks for a turn: at once if the instance is available, or else when it becomes so, in one step with its release,
     * so that it competes with all others for what it gives back.
     *
     * @param granted run once when the resources are the instance's, by whichever thread gave them free, perhaps before
     *     this method returns; short, must not block or throw
     * @throws IllegalStateException if a turn was asked for and not granted yet, or if the ticket is closed
     */
    void stage(Runnable granted);

    /**
     * Ends an execution: counts it, and gives its resources back. Whoever is next gets its turn.
     *
     * @throws IllegalStateException if no turn was granted
     */
    void release();

    /**
     * Gives a turn back in which nothing was executed; it is not counted.
     *
     * @throws IllegalStateException if no turn was granted
     */
    void releaseUnused();

    /**
     * Forgets the instance; a turn that it asked for is not granted any more. What an execution still has goes back
     * when that is released. Later calls do nothing.
     */
    @Override
    void close();
}
