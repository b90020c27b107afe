package dev.nereid.api.statistics;

import static java.util.Objects.requireNonNull;

import java.util.Map;

/**
 * Counts the sequences of a model version. Immutable.
 *
 * @param model the model version
 * @param live the number of sequences that have not ended, including the backlog
 * @param backlog the number of sequences that wait for a slot
 * @param slotsUsed the number of slots with a sequence, over all instances
 * @param slots the number of slots of all instances
 * @param stateBytes the bytes of the states that sequences hold
 * @param stateCopies the number of states that were copied: a batch had other sequences, or the same ones in another
 *     order, than the one before. Goes on when the version is loaded again
 * @param ended the number of sequences that ended by reason, without the reasons for which none ended; goes on when the
 *     version is loaded again
 */
public record SequenceStatistics(
        ModelVersionTags model,
        long live,
        long backlog,
        long slotsUsed,
        long slots,
        long stateBytes,
        long stateCopies,
        Map<SequenceEndReason, Long> ended) {
    /** Checks and copies the components. */
    public SequenceStatistics {
        requireNonNull(model, "model");
        ended = Map.copyOf(ended);
    }
}
