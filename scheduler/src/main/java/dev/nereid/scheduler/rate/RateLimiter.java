package dev.nereid.scheduler.rate;

import dev.nereid.spi.Device;

/** Decides which instances of all models may execute at the same time. Safe for use by any thread; never blocks. */
public interface RateLimiter {
    /** Lets every instance execute whenever it likes. */
    RateLimiter OFF = new NoLimits();

    /**
     * Says whether there are limits at all.
     *
     * @return {@code false} if tickets need not be asked
     */
    boolean isLimiting();

    /**
     * Makes an instance known that takes resources from now on.
     *
     * @param device where it runs; processors count as device 0
     * @param profile what each of its executions takes, and how often it gets its turn
     * @return by which the instance asks for its turns; owned, and to be closed, by the caller
     * @throws dev.nereid.api.InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if there could never
     *     be enough of a resource, or if a resource is one of all devices here and of each device there; the instance
     *     is not known then
     */
    RateLimitRegistration register(Device device, RateProfile profile);
}
