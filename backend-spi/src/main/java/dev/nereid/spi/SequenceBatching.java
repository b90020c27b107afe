package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The sequence batching of a model ({@code sequence_batching}), as its backend sees it. Immutable.
 *
 * @since 1.0
 */
public final class SequenceBatching {
    /** Strategies of sequence batching. Open: later versions may add constants. */
    public enum Strategy {
        /**
         * Each sequence has a fixed place in the batches of one instance. Null requests fill the places that have none
         * ({@link InferenceRequest#isNullRequest()}).
         */
        DIRECT,
        /** Requests of the oldest sequences share batches, each sequence on one instance. */
        OLDEST
    }

    private final Strategy strategy;
    private final boolean iterative;
    private final Duration maxIdle;
    private final List<ControlInput> controls;
    private final List<StateSpec> states;

    private SequenceBatching(
            Strategy strategy,
            boolean iterative,
            Duration maxIdle,
            List<ControlInput> controls,
            List<StateSpec> states) {
        this.strategy = requireNonNull(strategy, "strategy");
        this.iterative = iterative;
        this.maxIdle = requireNonNull(maxIdle, "maxIdle");
        this.controls = List.copyOf(controls);
        this.states = List.copyOf(states);
    }

    /**
     * Describes sequence batching without controls and states.
     *
     * @param strategy the strategy
     * @param maxIdle how long a sequence may have no request before the server ends it
     * @return the description
     */
    public static SequenceBatching of(Strategy strategy, Duration maxIdle) {
        return new SequenceBatching(strategy, false, maxIdle, List.of(), List.of());
    }

    /**
     * Returns the same description for requests that may be {@linkplain InferenceRequest#reschedule() rescheduled}.
     *
     * @return the changed description
     */
    public SequenceBatching withIterative() {
        return new SequenceBatching(strategy, true, maxIdle, controls, states);
    }

    /**
     * Returns the same description with one more control input.
     *
     * @param control the additional input
     * @return the changed description
     */
    public SequenceBatching with(ControlInput control) {
        return new SequenceBatching(strategy, iterative, maxIdle, append(controls, control), states);
    }

    /**
     * Returns the same description with one more state.
     *
     * @param state the additional state
     * @return the changed description
     */
    public SequenceBatching with(StateSpec state) {
        return new SequenceBatching(strategy, iterative, maxIdle, controls, append(states, state));
    }

    private static <T> List<T> append(List<T> list, T last) {
        List<T> longer = new ArrayList<>(list);
        longer.add(last);
        return longer;
    }

    /**
     * Returns the strategy.
     *
     * @return the strategy
     */
    public Strategy strategy() {
        return strategy;
    }

    /**
     * Says whether requests may be {@linkplain InferenceRequest#reschedule() rescheduled} ({@code iterative_sequence}).
     *
     * @return {@code false} by default
     */
    public boolean iterative() {
        return iterative;
    }

    /**
     * Returns how long a sequence may have no request before the server ends it. The backend gets no request that ends
     * it: a backend that keeps its own states drops them after this time.
     *
     * @return the time ({@code max_sequence_idle_microseconds})
     */
    public Duration maxIdle() {
        return maxIdle;
    }

    /**
     * Returns the control inputs in the order of the configuration.
     *
     * @return the inputs, which need not be among {@link ModelSettings#inputs()}; immutable
     */
    public List<ControlInput> controls() {
        return controls;
    }

    /**
     * Returns the states in the order of the configuration.
     *
     * @return the states; their inputs and outputs need not be in {@link ModelSettings}; immutable
     */
    public List<StateSpec> states() {
        return states;
    }

    /**
     * Finds a state.
     *
     * @param outputName the name under which its next value is written
     * @return the state, or empty if there is none of that name
     */
    public Optional<StateSpec> state(String outputName) {
        return states.stream()
                .filter(state -> state.outputName().equals(outputName))
                .findFirst();
    }
}
