package dev.nereid.spi;

import java.util.Map;

/**
 * Custom metrics of a plugin, published beside those of the server. Safe for use by any thread. <em>Implemented by the
 * server.</em>
 *
 * <p>Names of metrics and labels follow the rules of Prometheus; those that begin with {@code nv_} or {@code nereid_}
 * are the server's. A metric exists as long as the context that created it; two with the same name must have the same
 * kind, description and label names. No method blocks.
 *
 * <p>A metric is no reason for a load or a request to fail: no method throws but {@link NullPointerException} for {@code
 * null}. Where a metric cannot be, since a name is not valid or used otherwise, the result is one that counts nothing, and
 * the log has the reason once. The testkit's contexts record it in their log.
 *
 * @since 1.0
 */
@Incubating
public interface Metrics {
    /**
     * Creates a counter, or returns the one that exists.
     *
     * @param name the metric's name
     * @param description one line of text
     * @param labels the labels by name
     * @return the counter; one that counts nothing if a name is not valid or used otherwise
     */
    Counter counter(String name, String description, Map<String, String> labels);

    /**
     * Creates a gauge, or returns the one that exists.
     *
     * @param name the metric's name
     * @param description one line of text
     * @param labels the labels by name
     * @return the gauge; one that counts nothing as for {@link #counter}
     */
    Gauge gauge(String name, String description, Map<String, String> labels);

    /**
     * Creates a histogram, or returns the one that exists.
     *
     * @param name the metric's name
     * @param description one line of text
     * @param labels the labels by name
     * @param buckets the upper bounds of the buckets, in ascending order
     * @return the histogram; one that counts nothing as for {@link #counter}, or if the buckets are not those of the one
     *     that exists
     */
    Histogram histogram(String name, String description, Map<String, String> labels, double... buckets);

    /**
     * Creates metrics that are counted and not published, for servers and tests without a registry.
     *
     * @param log receives a warning for each metric that cannot be
     * @return new metrics
     */
    static Metrics unpublished(System.Logger log) {
        return new CountingMetrics(log);
    }

    /** A number that only rises. */
    @Incubating
    interface Counter {
        /**
         * Adds to the number.
         *
         * @param amount 0 or more; a negative one is ignored, and logged once
         */
        void increment(double amount);
    }

    /** A number that rises and falls. */
    @Incubating
    interface Gauge {
        /**
         * Sets the number.
         *
         * @param value the number
         */
        void set(double value);

        /**
         * Adds to the number.
         *
         * @param amount any number
         */
        void increment(double amount);
    }

    /** A distribution of values. */
    @Incubating
    interface Histogram {
        /**
         * Counts a value.
         *
         * @param value the value
         */
        void observe(double value);
    }
}
