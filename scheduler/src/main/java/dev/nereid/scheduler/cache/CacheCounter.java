package dev.nereid.scheduler.cache;

import dev.nereid.scheduler.statistics.ModelMeter;

/** Counts hits and misses of the response cache. Safe for use by any thread; never blocks. */
public interface CacheCounter {
    /** Returns a counter that adds to the statistics of a model. */
    static CacheCounter of(ModelMeter meter) {
        return new CacheCounter() {
            @Override
            public void hit(long queueNanos, long lookupNanos, long requestNanos) {
                meter.hit(queueNanos, lookupNanos, requestNanos);
            }

            @Override
            public void missed(long lookupAndInsertNanos) {
                meter.missed(lookupAndInsertNanos);
            }
        };
    }

    /**
     * Counts a request that is completed from the cache, before its delivery.
     *
     * @param queueNanos the time from being enqueued to the lookup
     * @param lookupNanos the duration of the lookup
     * @param requestNanos the time from the arrival to the completion
     */
    void hit(long queueNanos, long lookupNanos, long requestNanos);

    /**
     * Counts a request that was not in the cache, once its response is inserted. It is not counted if another request
     * of the same key was faster.
     *
     * @param lookupAndInsertNanos the duration of lookup and insertion
     */
    void missed(long lookupAndInsertNanos);
}
