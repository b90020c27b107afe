package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.scheduler.admission.AdmissionLimits;
import java.util.Optional;

/**
 * Options of admission, rate limiter and response cache. Immutable.
 *
 * <p>A request is in flight until its responses are closed and its memory is freed. A request over a limit is refused
 * at once, with {@linkplain InferenceException#retryAfter the time of a retry}.
 *
 * @param limits the limits of requests in flight and their input bytes for all models together; empty for {@link
 *     #defaultMaxRequests} and three quarters of the limit of tensor memory
 * @param rateLimit the rate limiter, which lets an instance execute only while resources suffice, as configurations
 *     declare by {@code instance_group.rate_limiter}, and rules out direct execution; empty for none: then the settings
 *     of configurations have no effect
 * @param cache the response cache, for models with {@code response_cache} enabled in their configurations; empty for
 *     none
 * @param delay the requests that have to wait for a model with dynamic batching or sequences before its first batch is
 *     taken, so that tests know the batches: applies once, from the load of the model until it stops. For tests only: a
 *     model that receives fewer requests executes none of them
 */
public record SchedulingOptions(
        Optional<AdmissionLimits> limits,
        Optional<RateLimitOptions> rateLimit,
        Optional<CacheOptions> cache,
        DelayOptions delay) {
    /** The heap of a request in flight, with a margin. */
    private static final long HEAP_BYTES_PER_REQUEST = 16 << 10;

    public SchedulingOptions {
        requireNonNull(limits, "limits");
        requireNonNull(rateLimit, "rateLimit");
        requireNonNull(cache, "cache");
        requireNonNull(delay, "delay");
    }

    /**
     * Returns the default limit of requests in flight. It is one for each 16 KiB of the largest heap of this JVM, and
     * 100,000 at most.
     */
    public static long defaultMaxRequests() {
        return Math.min(100_000, Runtime.getRuntime().maxMemory() / HEAP_BYTES_PER_REQUEST);
    }
}
