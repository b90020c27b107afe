package dev.nereid.examples.square;

import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Parameters;

/**
 * Settings of a model. Immutable.
 *
 * @param decoupled whether a request has any number of responses; one otherwise
 * @param inferNanos how long the computation of each response takes at least
 * @param outputNanos how long the delivery of each response takes at least
 * @param cancelNanos how long the end of a cancelled request takes at least
 * @param failCount the number of responses that fail, before those without outputs
 * @param emptyCount the number of the last responses that are left out
 */
record SquareModel(
        boolean decoupled, long inferNanos, long outputNanos, long cancelNanos, long failCount, long emptyCount) {
    private static final String INFER_DELAY = "CUSTOM_INFER_DELAY_NS";
    private static final String OUTPUT_DELAY = "CUSTOM_OUTPUT_DELAY_NS";
    private static final String CANCEL_DELAY = "CUSTOM_CANCEL_DELAY_NS";
    private static final String FAIL_COUNT = "CUSTOM_FAIL_COUNT";
    private static final String EMPTY_COUNT = "CUSTOM_EMPTY_COUNT";

    static SquareModel of(ModelContext context) {
        Parameters parameters = context.parameters();
        return new SquareModel(
                context.settings().decoupled(),
                number(parameters, INFER_DELAY),
                number(parameters, OUTPUT_DELAY),
                number(parameters, CANCEL_DELAY),
                number(parameters, FAIL_COUNT),
                number(parameters, EMPTY_COUNT));
    }

    private static long number(Parameters parameters, String name) {
        return parameters.longInteger(name, 0, Long.MAX_VALUE).orElse(0);
    }

    /** Returns whether responses are simulated, and their times reported. */
    boolean simulates() {
        return (inferNanos | outputNanos | cancelNanos | failCount | emptyCount) != 0;
    }

    /** Returns whether a response is left out. */
    boolean isEmpty(int index, int count) {
        return index >= count - emptyCount;
    }

    /** Returns whether a response that is not left out fails. */
    boolean isFailure(int index, int count) {
        return index >= count - emptyCount - failCount;
    }
}
