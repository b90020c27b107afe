package dev.nereid.examples.square;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import java.util.List;

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

    /** The parameters that a configuration may have. */
    static final List<String> PARAMETERS = List.of(INFER_DELAY, OUTPUT_DELAY, CANCEL_DELAY, FAIL_COUNT, EMPTY_COUNT);

    static SquareModel of(ModelSettings settings) {
        return new SquareModel(
                settings.decoupled(),
                number(settings, INFER_DELAY),
                number(settings, OUTPUT_DELAY),
                number(settings, CANCEL_DELAY),
                number(settings, FAIL_COUNT),
                number(settings, EMPTY_COUNT));
    }

    private static long number(ModelSettings settings, String parameter) {
        String text = settings.parameters().getOrDefault(parameter, "0");
        try {
            long number = Long.parseLong(text);
            if (number >= 0) {
                return number;
            }
        } catch (NumberFormatException ignored) {
            // refused below, together with numbers that are too small
        }
        throw new BackendException(
                ErrorCode.INVALID_ARGUMENT, parameter + ": '" + text + "' (expected: a whole number, 0 or more)");
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
