package dev.nereid.server.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.call.CallChain;
import dev.nereid.repository.ModelKey;
import dev.nereid.spi.ErrorCode;

/** Limits the chains of models that wait for each other. Static functions only. */
public final class CallerCheck {
    private CallerCheck() {}

    /**
     * Checks that a chain may become longer.
     *
     * @param callers the models that wait for the request
     * @param key the key of the model that is to get the request
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} with the path if it is too long
     */
    public static void check(CallChain callers, String key) {
        if (callers.models().size() >= CallChain.MAX_MODELS) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "request to model '" + ModelKey.name(key) + "' on behalf of more than " + CallChain.MAX_MODELS
                            + " others: " + callers.path(ModelKey.name(key))
                            + " (expected: models that do not send requests in a circle)");
        }
    }
}
