package dev.nereid.examples.iterativesequence;

import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;

/**
 * Settings of a model. Immutable.
 *
 * @param iterative whether requests may be executed again
 * @param decoupled whether each number is a response; the last one alone otherwise
 * @param batches whether tensors have a batch dimension
 * @param delayNanos how long each execution takes at least, in nanoseconds
 */
record CountdownModel(boolean iterative, boolean decoupled, boolean batches, long delayNanos) {
    static CountdownModel of(ModelSettings settings, long delayNanos) {
        boolean iterative =
                settings.sequenceBatching().filter(SequenceBatching::iterative).isPresent();
        return new CountdownModel(iterative, settings.decoupled(), settings.batches(), delayNanos);
    }
}
