package dev.nereid.server.demand;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelKey;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.List;
import java.util.stream.Collectors;

/** Creates the errors of requests for models that are not loaded. Static functions only. */
final class DemandErrors {
    private static final Duration RETRY_AFTER = Duration.ofSeconds(1);

    private DemandErrors() {}

    /** The server stops. */
    static InferenceException stopped() {
        return new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
    }

    /** The models would never fit. */
    static InferenceException tooLarge(List<String> models, long bytes, long limit) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                names(models) + " cannot be loaded: " + bytes + " bytes of memory, but the budget leaves " + limit
                        + " bytes beside pinned models (expected: a larger --model-memory-budget)");
    }

    /** The load failed; the next attempt is later. */
    static InferenceException notLoaded(String model, InferenceException reason, Duration pause) {
        ErrorCode code = reason.code() == ErrorCode.NOT_FOUND ? ErrorCode.NOT_FOUND : ErrorCode.UNAVAILABLE;
        return new InferenceException(
                code,
                name(model) + " could not be loaded: " + reason.publicMessage().strip()
                        + " (expected: a model that loads; the next attempt is in "
                        + Math.max(1, pause.toSeconds()) + " s, or at the next load by a client)");
    }

    /** A client unloaded the model while requests waited for it. */
    static InferenceException unloaded(String model) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "Request for unknown model: '" + ModelKey.name(model) + "' is not at ready state");
    }

    /** The model was loaded, and is not there any more. */
    static InferenceException gone(String model) {
        return InferenceException.overloaded(
                name(model) + " was unloaded before the request was queued; try again later", RETRY_AFTER);
    }

    /** The request has waited for as long as it may. */
    static InferenceException timedOut(String model, Duration waited, long used, long budget) {
        String memory = budget == Long.MAX_VALUE ? "" : "; models take " + used + " of " + budget + " bytes";
        return InferenceException.overloaded(
                name(model) + " was not loaded within " + waited.toMillis() + " ms" + memory
                        + " (expected: models that become idle, a larger --model-memory-budget, or a longer timeout);"
                        + " try again later",
                RETRY_AFTER);
    }

    /** Too many requests wait already. */
    static InferenceException tooManyWaiting(String model) {
        return InferenceException.overloaded(
                name(model) + " is not loaded, and too many requests wait for loads already; try again later",
                RETRY_AFTER);
    }

    private static String name(String model) {
        return "model '" + ModelKey.name(model) + "'";
    }

    private static String names(List<String> models) {
        return models.size() == 1
                ? name(models.getFirst())
                : models.stream().map(DemandErrors::name).collect(Collectors.joining(", "));
    }
}
