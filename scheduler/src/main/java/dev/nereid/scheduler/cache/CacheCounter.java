package dev.nereid.scheduler.cache;

import dev.nereid.scheduler.statistics.ModelMeter;

/** Counts hits and misses of the response cache. Safe for use by any thread; never blocks. */
public interface CacheCounter {
    /** Counts in the figures of a model. */
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
     * Counts a call that the cache answers, before its client is told.
     *
     * @param queueNanos from the arrival to the begin of the lookup
     * @param lookupNanos how long the lookup took
     * @param requestNanos from the arrival to the answer
     */
    void hit(long queueNanos, long lookupNanos, long requestNanos);

    /**
     * Counts a call that the cache did not answer, once its own answer was inserted; not if another call of the same
     * key was faster.
     *
     * @param lookupAndInsertNanos how long lookup and insert took
     */
    void missed(long lookupAndInsertNanos);
}
