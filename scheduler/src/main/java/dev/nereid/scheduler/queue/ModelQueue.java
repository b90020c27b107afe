package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.spi.Sequence;
import java.util.List;
import java.util.Optional;

/**
 * Queues the requests of one model, and passes them to its instances. Safe for use by any thread, as
 * {@link RequestIntake}.
 *
 * <p>{@link RequestQueue} has one queue for all instances. Models with sequences have one for each instance.
 */
public interface ModelQueue extends RequestIntake {
    /** Returns the source from which one instance takes batches. Called once for each instance. */
    WorkSource source();

    void endHold();

    /** Returns whether a sequence lives here: further requests of it may come. Never for a model without sequences. */
    default boolean hasSequence(Sequence.Id id) {
        return false;
    }

    /** Ends a sequence after its requests that wait, if it lives: it starts again elsewhere. */
    default void replaceSequence(Sequence.Id id) {}

    /**
     * Ends a sequence after its requests that wait, if it lives: one of its requests is never offered, since its client
     * cancelled it. Has no effect on iterative sequences.
     */
    default void cancelSequence(Sequence.Id id) {}

    /**
     * Runs an action when no sequence lives here any more, so that an end of the model interrupts none. Called once.
     *
     * @param action runs once, on any thread; short, never blocks
     * @return {@code false} if none lives now, and the action does not run
     */
    default boolean whenSequencesEnd(Runnable action) {
        return false;
    }

    /** Returns whether any sequence lives here; never for a model without sequences. */
    default boolean hasSequences() {
        return false;
    }

    /** Returns the numbers of sequences; empty for a model without sequences. */
    default Optional<SequenceUse> sequenceUse() {
        return Optional.empty();
    }

    int waiting();

    /**
     * Refuses requests that wait while no instance is available, from now on: the model is to be unloaded, and its end
     * would wait for them. Does nothing for requests that wait elsewhere.
     */
    default void leave() {}

    /** Refuses requests from now on, as {@link #leave} does, too; waiting requests may be taken at once. */
    void stop();

    /** Removes all waiting requests, to be completed by the caller. */
    List<ScheduledRequest> drain();

    /** Closes the timeout; called once no request waits or will wait. */
    void close();
}
