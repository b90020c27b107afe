package dev.nereid.server.options;

/**
 * The requests that have to wait for a model before its first batch is taken. For tests. Immutable.
 *
 * @param requests the requests that have to wait for a dynamic batcher, or in the slots of sequences; 0 for none
 * @param backlogged the requests that have to wait in the backlog of the direct strategy of sequences; 0 for none
 */
public record DelayOptions(int requests, int backlogged) {
    public static final DelayOptions NONE = new DelayOptions(0, 0);

    public DelayOptions {
        if (requests < 0 || backlogged < 0) {
            throw new IllegalArgumentException(
                    "delay: " + requests + " requests, " + backlogged + " in the backlog (expected: >= 0)");
        }
    }
}
