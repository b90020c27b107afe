package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.config.MisspeltParameters;
import dev.nereid.scheduler.Supervision;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.time.Duration;

/** Reads the execution watchdog limit of a model. Static functions only. */
public final class ExecutionLimitReader {
    private static final String PARAMETER = MisspeltParameters.EXECUTION_LIMIT;

    private ExecutionLimitReader() {}

    /**
     * Returns the supervision of a model.
     *
     * @param config its configuration; a parameter in it takes precedence
     * @param server the supervision of models without it
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if the parameter is no number of seconds
     */
    public static Supervision of(ModelConfig config, Supervision server) {
        if (!config.containsParameters(PARAMETER)) {
            return server;
        }
        String value = config.getParametersOrThrow(PARAMETER).getStringValue();
        int seconds = seconds(value);
        if (seconds < 0) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model '" + config.getName() + "': parameter '" + PARAMETER + "': '" + value
                            + "' (expected: a whole number of seconds, 0 or more)");
        }
        return server.withExecutionLimit(Duration.ofSeconds(seconds));
    }

    private static int seconds(String value) {
        try {
            return Integer.parseInt(value.strip());
        } catch (NumberFormatException e) {
            return -1;
        }
    }
}
