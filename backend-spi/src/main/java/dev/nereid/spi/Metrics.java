package dev.nereid.spi;

import java.util.Map;

/**
 * Custom metrics of a plugin. This version of the server counts them, and a later one publishes them beside its own. Safe for
 * use by any thread. <em>Implemented by the server.</em>
 *
 * <p>Names of metrics and labels follow the rules of Prometheus, and are free but for the prefixes {@code nv_} and
 * {@code nereid_} of the server. Metrics with the same name have the same kind, and the description of the first one;
 * with the same labels too they are one metric: all count together. Such a metric exists until each of its users has
 * {@linkplain Counter#remove removed} it, at the latest until the end of the context. No method blocks.
 *
 * <p>A metric is no reason for a load or a request to fail: no method throws but {@link NullPointerException} for
 * {@code null}. Where a metric cannot be created, since a name is not valid or used otherwise, the result counts
 * nothing, and the log has the reason once. The testkit's contexts record it in their log.
 *
 * @since 1.0
 */
@Incubating
public interface Metrics {
    /**
     * Creates a counter, or returns the one that exists.
     *
     * @param name the metric's name
     * @param description one line of text; without effect where there is a metric of this name
     * @param labels the labels by name; metrics of one name may have different ones
     * @return the counter; one that counts nothing if a name is not valid, or is that of another kind
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
     * @return the histogram; one that counts nothing as for {@link #counter}, or if the existing one has other buckets
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
         * Returns the number.
         *
         * @return the number; 0 of a counter that counts nothing
         */
        default double value() {
            return 0;
        }

        /**
         * Removes the metric, unless it was created elsewhere too and not removed there. This object counts nothing from now
         * on. A metric that is created again under the name begins at 0.
         */
        default void remove() {}

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
         * Returns the number.
         *
         * @return the number; 0 of a gauge that counts nothing
         */
        default double value() {
            return 0;
        }

        /** Removes the metric, as {@link Counter#remove}. */
        default void remove() {}

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
         * Returns the number of values.
         *
         * @return the number; 0 of a histogram that counts nothing
         */
        default long count() {
            return 0;
        }

        /**
         * Returns the sum of the values.
         *
         * @return the sum; 0 of a histogram that counts nothing
         */
        default double sum() {
            return 0;
        }

        /** Removes the metric, as {@link Counter#remove}. */
        default void remove() {}

        /**
         * Counts a value.
         *
         * @param value the value
         */
        void observe(double value);
    }
}
