package dev.nereid.scheduler.queue;

import dev.nereid.api.statistics.SequenceEndReason;
import java.util.Map;

/**
 * The sequences of one scheduler at one moment, and those of its model version that ended. Immutable.
 *
 * @param live the number of sequences that have not ended, those in the backlog included
 * @param backlog the number of sequences that wait for a slot
 * @param slotsUsed the number of slots with a sequence
 * @param slots the number of slots of all instances
 * @param states the states of the sequences
 * @param ended the number of sequences that ended by reason, also those of earlier schedulers of the version
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

    /** Copies the components. */
    public SequenceUse {
        ended = Map.copyOf(ended);
    }
}
