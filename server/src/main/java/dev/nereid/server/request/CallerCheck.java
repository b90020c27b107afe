package dev.nereid.server.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.repository.ModelKey;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Refuses requests of models that lead back to a model which waits for them. Static functions only. */
public final class CallerCheck {
    private CallerCheck() {}

    /**
     * Checks that a model version does not wait for a request to itself.
     *
     * @param callers the versions that wait for the request, the outermost first
     * @param key the key of the model that is to get the request
     * @param version its version
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} with the path if it does
     */
    public static void check(List<ModelRef> callers, String key, long version) {
        if (!contains(callers, key, version)) {
            return;
        }
        String path = Stream.concat(callers.stream().map(ModelRef::name), Stream.of(key))
                .map(ModelKey::name)
                .collect(Collectors.joining(" -> "));
        throw new InferenceException(
                ErrorCode.INVALID_ARGUMENT,
                "request to model '" + ModelKey.name(key) + "' would wait for itself: " + path
                        + " (expected: models that do not send requests in a circle)");
    }

    /** Compares without an object for each request: steps of ensembles are checked too. */
    private static boolean contains(List<ModelRef> callers, String key, long version) {
        for (int i = 0; i < callers.size(); i++) {
            ModelRef caller = callers.get(i);
            if (caller.version() == version && caller.name().equals(key)) {
                return true;
            }
        }
        return false;
    }
}
