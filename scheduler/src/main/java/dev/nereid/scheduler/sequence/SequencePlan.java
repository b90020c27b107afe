package dev.nereid.scheduler.sequence;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.NamedTensor;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import java.util.ArrayList;
import java.util.List;

/**
 * Configures how the sequences of a model are scheduled ({@code sequence_batching}). Immutable.
 *
 * @param batching the strategy and the idle time
 * @param controls the control inputs, in the order of the configuration
 * @param states the states that the server keeps, in the order of the configuration
 * @param slots the sequences that one instance has at a time, at least 1
 * @param maxQueueDelayNanos the maximum time that a request waits for requests of other sequences; 0 for none
 * @param minimumSlotUtilization the part of the slots that have to have a request before that time, from 0 to 1; of the
 *     direct strategy alone
 * @param preferredSizes the batch sizes that are taken before that time; empty for the model's maximum alone; of the
 *     oldest strategy alone
 * @param preserveOrdering whether responses are delivered in the order in which their requests began; of the oldest
 *     strategy alone
 */
public record SequencePlan(
        SequenceBatching batching,
        List<ControlValues> controls,
        List<InitialState> states,
        int slots,
        long maxQueueDelayNanos,
        float minimumSlotUtilization,
        List<Integer> preferredSizes,
        boolean preserveOrdering) {
    private static final Sequence.Id FIRST_ID = new Sequence.Id.Numeric(1);

    /** Checks and copies the components. */
    public SequencePlan {
        requireNonNull(batching, "batching");
        controls = List.copyOf(controls);
        states = List.copyOf(states);
        preferredSizes = List.copyOf(preferredSizes);
        if (slots < 1) {
            throw new IllegalArgumentException("slots: " + slots + " (expected: >= 1)");
        }
        if (maxQueueDelayNanos < 0) {
            throw new IllegalArgumentException("maxQueueDelayNanos: " + maxQueueDelayNanos + " (expected: >= 0)");
        }
        if (!(minimumSlotUtilization >= 0 && minimumSlotUtilization <= 1)) {
            throw new IllegalArgumentException(
                    "minimumSlotUtilization: " + minimumSlotUtilization + " (expected: 0 to 1)");
        }
    }

    /** Returns whether each sequence has a fixed place in the batches of its instance. */
    public boolean isDirect() {
        return batching.strategy() == SequenceBatching.Strategy.DIRECT;
    }

    /** Returns the time for which a sequence may have no request. */
    long maxIdleNanos() {
        try {
            return batching.maxIdle().toNanos();
        } catch (ArithmeticException e) { // 292 years
            return Long.MAX_VALUE;
        }
    }

    /**
     * Returns the inputs that the server adds to the first request of a sequence: the flag START is set, the id is 1,
     * and states have their initial values.
     *
     * @return the inputs, in memory that is never changed, and is freed by the garbage collector
     */
    public List<NamedTensor> firstInputs(boolean batches) {
        List<NamedTensor> inputs = new ArrayList<>(new SequenceControls(controls(), batches).ofFirst(FIRST_ID));
        for (InitialState state : states()) {
            inputs.add(new NamedTensor(state.spec().inputName(), state.value()));
        }
        return List.copyOf(inputs);
    }
}
