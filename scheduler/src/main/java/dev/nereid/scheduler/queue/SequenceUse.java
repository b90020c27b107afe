package dev.nereid.scheduler.queue;

import dev.nereid.api.statistics.SequenceEndReason;
import java.util.Map;

/**
 * The numbers of live and ended sequences at one moment. Immutable.
 *
 * @param live the number of sequences of the scheduler that have not ended; sequences in the backlog count
 * @param backlog the number of sequences that wait for a slot
 * @param slots the number of slots of all instances
 * @param ended the number of ended sequences of the model version by reason; sequences of earlier schedulers count
 */
public record SequenceUse(
        int live, int backlog, int slotsUsed, int slots, States states, Map<SequenceEndReason, Long> ended) {
    /**
     * The states of sequences. Immutable.
     *
     * @param bytes the bytes that sequences hold
     * @param copies the number of states that were copied, also by earlier schedulers of the version
     */
    public record States(long bytes, long copies) {}

    public SequenceUse {
        ended = Map.copyOf(ended);
    }
}
