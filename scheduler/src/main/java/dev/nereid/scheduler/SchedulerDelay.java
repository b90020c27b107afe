package dev.nereid.scheduler;

/**
 * The number of requests that must wait before a scheduler executes its first one. For tests, which know the batches
 * then. Applies once. Immutable.
 *
 * @param requests the number of requests that must wait for a dynamic batcher. For a model with sequences only requests
 *     of sequences with a slot count: of all instances together with the direct strategy; of each instance, and one for
 *     each sequence, with the oldest strategy. 0 for none
 * @param backlogged the number of requests that must wait in the backlog of the direct strategy; 0 for none
 */
public record SchedulerDelay(int requests, int backlogged) {
    public static final SchedulerDelay NONE = new SchedulerDelay(0, 0);

    public SchedulerDelay {
        if (requests < 0 || backlogged < 0) {
            throw new IllegalArgumentException(
                    "delay: " + requests + " requests, " + backlogged + " in the backlog (expected: >= 0)");
        }
    }
}
