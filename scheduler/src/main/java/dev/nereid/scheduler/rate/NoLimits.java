package dev.nereid.scheduler.rate;

import dev.nereid.spi.Device;

/** The limiter that limits nothing. Immutable. */
final class NoLimits implements RateLimiter {
    private static final Ticket FREE = new Free();

    @Override
    public boolean isLimiting() {
        return false;
    }

    @Override
    public Ticket register(Device device, RateProfile profile) {
        return FREE;
    }

    /** The ticket of all instances. */
    private static final class Free implements Ticket {
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
        public void giveBackUnused() {}

        @Override
        public void close() {}
    }
}
