package dev.nereid.scheduler.rate;

import dev.nereid.spi.Device;

/** A rate limiter without limits. Immutable. */
final class NoExecutionLimit implements ExecutionLimiter {
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
