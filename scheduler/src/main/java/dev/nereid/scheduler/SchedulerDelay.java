package dev.nereid.scheduler;

/**
 * The requests that have to wait before a scheduler executes its first one, so that tests know the batches. Applies
 * once. Immutable.
 *
 * @param requests the requests that have to wait for a dynamic batcher; for a model with sequences, those of sequences
 *     with a slot, of all instances with the direct strategy, and of each instance, one for each sequence, with the
 *     oldest; 0 for none
 * @param backlogged the requests that have to wait in the backlog of the direct strategy; 0 for none
 */
public record SchedulerDelay(int requests, int backlogged) {
    /** No delay. */
    public static final SchedulerDelay NONE = new SchedulerDelay(0, 0);

    /** Checks the components. */
    public SchedulerDelay {
        if (requests < 0 || backlogged < 0) {
            throw new IllegalArgumentException(
                    "delay: " + requests + " requests, " + backlogged + " in the backlog (expected: >= 0)");
        }
    }
}
