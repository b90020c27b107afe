package dev.nereid.server.control;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Converts what a load throws into the failure that clients receive. Immutable.
 *
 * @param fatalErrors handles errors after which the process may not be able to serve
 */
record LoadFailures(FatalErrorHandler fatalErrors) {
    private static final Logger LOG = LoggerFactory.getLogger(LoadFailures.class);

    /**
     * Returns the failure of a load. An unexpected failure is logged, such as a model that is too large for the heap.
     * Clients see paths within the repository alone; the log has the whole ones.
     *
     * @param config its configuration, as far as it is known
     */
    InferenceException of(ModelDirectory directory, ModelConfig config, Throwable cause) {
        return switch (cause) {
            case InferenceException failure -> {
                String shown = ServerPaths.within(failure.publicMessage(), directory.root());
                yield shown.equals(failure.publicMessage()) ? failure : failure.withMessage(shown);
            }
            case BackendException failure ->
                new InferenceException(failure.code(), shown(String.valueOf(failure.getMessage()), directory, config));
            default -> {
                fatalErrors.check(cause);
                LOG.atError()
                        .addKeyValue("model", directory.name())
                        .setCause(cause)
                        .log("load failed unexpectedly (model '{}')", directory.name());
                yield new InferenceException(ErrorCode.INTERNAL, shown("internal error: " + cause, directory, config));
            }
        };
    }

    private static String shown(String text, ModelDirectory directory, ModelConfig config) {
        String shown = ServerPaths.namesAlone(ServerPaths.within(text, directory.root()), config.toString());
        if (!shown.equals(text)) {
            LOG.atWarn()
                    .addKeyValue("model", directory.name())
                    .log("load failed, with whole paths (model '{}'): {}", directory.name(), text);
        }
        return shown;
    }
}
