package dev.nereid.scheduler.rate;

import dev.nereid.spi.Device;

/** Decides which instances of all models may execute at the same time. Safe for use by any thread; never blocks. */
public interface ExecutionLimiter {
    ExecutionLimiter OFF = new NoLimit();

    /** Returns whether there are limits; without any, registrations grant every permit at once. */
    boolean isLimiting();

    /**
     * Registers an instance.
     *
     * @param device the device of the instance; CPUs count as device 0
     * @param profile the resources and the priority of its executions
     * @return the registration, owned and closed by the caller
     * @throws dev.nereid.api.InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if an execution takes
     *     more of a resource than its limit, or if a resource is both global and device-specific; the instance is not
     *     registered then
     */
    RateLimitRegistration register(Device device, RateProfile profile);

    /** A rate limiter without limits. Immutable. */
    final class NoLimit implements ExecutionLimiter {
        private static final RateLimitRegistration UNLIMITED = new Unlimited();

        @Override
        public boolean isLimiting() {
            return false;
        }

        @Override
        public RateLimitRegistration register(Device device, RateProfile profile) {
            return UNLIMITED;
        }

        /** The registration that grants every permit at once. */
        private static final class Unlimited implements RateLimitRegistration {
            @Override
            public boolean isLimited() {
                return false;
            }

            @Override
            public long load() {
                return 0;
            }

            @Override
            public void stage(Runnable granted) {
                granted.run();
            }

            @Override
            public void release() {}

            @Override
            public void releaseUnused() {}

            @Override
            public void close() {}
        }
    }
}
