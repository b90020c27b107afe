package dev.nereid.server.demand;

import dev.nereid.api.InferenceException;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.LongSupplier;

/**
 * Delays further loads of a model after a failure. The pause doubles with each failure. Requests within the pause start
 * no load. Lock-free; safe for use by any thread.
 */
final class LoadBackOff {
    static final Duration FIRST = Duration.ofSeconds(1);
    static final Duration LONGEST = Duration.ofSeconds(64);

    private record Failure(InferenceException reason, Duration pause, long untilNanos) {}

    private final ConcurrentHashMap<String, Failure> failures = new ConcurrentHashMap<>();
    private final LongSupplier nanoTime;

    LoadBackOff(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** Records a failure; returns the error of the requests that waited for the load. */
    InferenceException failed(String model, InferenceException reason) {
        long now = nanoTime.getAsLong();
        Failure failure = failures.compute(model, (_, before) -> {
            Duration doubled = before == null ? FIRST : before.pause().multipliedBy(2);
            Duration pause = doubled.compareTo(LONGEST) > 0 ? LONGEST : doubled;
            return new Failure(reason, pause, now + pause.toNanos());
        });
        return DemandErrors.notLoaded(model, reason, failure.pause());
    }

    /** Forgets the failures of a model, which was loaded or is to be loaded at once. */
    void clear(String model) {
        failures.remove(model);
    }

    /** Returns why a model is not loaded now; empty if it may be. */
    Optional<InferenceException> refusal(String model) {
        Failure failure = failures.get(model);
        if (failure == null) {
            return Optional.empty();
        }
        long left = failure.untilNanos() - nanoTime.getAsLong();
        return left > 0
                ? Optional.of(DemandErrors.notLoaded(model, failure.reason(), Duration.ofNanos(left)))
                : Optional.empty();
    }
}
