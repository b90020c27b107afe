package dev.nereid.backend.python.environment;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.Parameters;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalInt;

/**
 * Parameters of a model's configuration that the backend reads. Immutable.
 *
 * <p>All other parameters are free for the model: reading these declares all names.
 *
 * @param executionEnvironment {@code EXECUTION_ENV_PATH}: a directory or an archive with a Python; empty for the Python
 *     of the backend
 * @param forceCpuOnlyInputTensors {@code FORCE_CPU_ONLY_INPUT_TENSORS}, {@code yes} by default; without effect, since
 *     all inputs are on the host
 * @param executionTimeout {@code EXECUTION_TIMEOUT_SECONDS}: the time after which an execution is ended together with
 *     its process; empty for no limit
 * @param startTimeout {@code START_TIMEOUT_SECONDS}: the time for import and {@code initialize}; that of the backend if
 *     it is missing, empty for no limit, as with 0
 * @param setsVisibleDevices {@code SET_CUDA_VISIBLE_DEVICES}: whether the process sees the device of its instance
 *     alone, with the id 0
 * @param debugPort {@code DEBUG_PORT}: the port at which the process waits for a debugger; empty for none
 * @param limits {@code LIMIT_MEMORY}, {@code LIMIT_PROCESSOR_SECONDS} and {@code LIMIT_OPEN_FILES}, each that of the
 *     backend if it is missing
 */
public record PythonParameters(
        Optional<String> executionEnvironment,
        boolean forceCpuOnlyInputTensors,
        Optional<Duration> executionTimeout,
        Optional<Duration> startTimeout,
        boolean setsVisibleDevices,
        OptionalInt debugPort,
        ProcessLimits limits) {
    private static final String FORCE_CPU = "FORCE_CPU_ONLY_INPUT_TENSORS";
    private static final String VISIBLE = "SET_CUDA_VISIBLE_DEVICES";
    private static final String NO = "no";
    private static final String YES = "yes";
    private static final int MAX_PORT = 65535;
    private static final double MAX_SECONDS = 1e9;
    private static final double MILLIS = 1e3;

    /**
     * Reads the parameters of a model.
     *
     * @param settings the settings of the backend, for what the model does not set
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if a value does not fit; {@link
     *     ErrorCode#UNSUPPORTED} for {@code FORCE_CPU_ONLY_INPUT_TENSORS}
     */
    public static PythonParameters of(ModelContext model, PythonSettings settings) {
        Parameters parameters = model.parameters();
        parameters.asMap(); // declares all names
        String force = parameters.text(FORCE_CPU).orElse(YES);
        if (!force.equals(YES) && !force.equals(NO)) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED, "Incorrect value for " + FORCE_CPU + ": " + force + "'"); // sic
        }
        return new PythonParameters(
                parameters.text("EXECUTION_ENV_PATH").filter(path -> !path.isEmpty()),
                force.equals(YES),
                seconds(parameters, "EXECUTION_TIMEOUT_SECONDS").filter(Duration::isPositive),
                seconds(parameters, "START_TIMEOUT_SECONDS")
                        .or(settings::startTimeout)
                        .filter(Duration::isPositive),
                truth(parameters),
                parameters.integer("DEBUG_PORT", 1, MAX_PORT),
                ProcessLimits.read(
                        parameters, "LIMIT_MEMORY", "LIMIT_PROCESSOR_SECONDS", "LIMIT_OPEN_FILES", settings.limits()));
    }

    private static boolean truth(Parameters parameters) {
        String text = parameters.choice(VISIBLE, YES, NO, "true", "false").orElse(NO);
        return text.equals(YES) || text.equals("true");
    }

    private static Optional<Duration> seconds(Parameters parameters, String name) {
        return parameters.number(name, 0, MAX_SECONDS).stream()
                .mapToObj(seconds -> Duration.ofMillis((long) Math.ceil(seconds * MILLIS)))
                .findFirst();
    }
}
