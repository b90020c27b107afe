package dev.nereid.backend.python.report;

import dev.nereid.spi.Metrics;
import java.util.Map;

/** The use of a metric by one process. Safe for use by any thread; {@link #remove} is called once. */
sealed interface MetricUse {
    /** Kinds of metrics, in the order of their numbers in frames. */
    enum Kind {
        COUNTER,
        GAUGE,
        HISTOGRAM
    }

    /**
     * Changes the metric by {@link MetricFrames#INCREMENT}, {@link MetricFrames#SET} or {@link MetricFrames#OBSERVE};
     * returns whether its kind has the operation.
     */
    boolean change(int operation, double value);

    /** Returns the number of a counter or gauge; of a histogram the sum of its values. */
    double value();

    /** Returns whether a model may ask for the number. */
    default boolean hasValue() {
        return true;
    }

    /** Removes the metric, unless others use it. */
    void remove();

    /** A counter. */
    record OfCounter(
            MetricFamilies families, MetricFamilies.Family family, Map<String, String> labels, Metrics.Counter counter)
            implements MetricUse {
        @Override
        public boolean change(int operation, double value) {
            if (operation != MetricFrames.INCREMENT) {
                return false;
            }
            counter.increment(value);
            return true;
        }

        @Override
        public double value() {
            return counter.value();
        }

        @Override
        public void remove() {
            counter.remove();
            families.release(family, labels);
        }
    }

    /** A gauge. */
    record OfGauge(
            MetricFamilies families, MetricFamilies.Family family, Map<String, String> labels, Metrics.Gauge gauge)
            implements MetricUse {
        @Override
        public boolean change(int operation, double value) {
            switch (operation) {
                case MetricFrames.INCREMENT -> gauge.increment(value);
                case MetricFrames.SET -> gauge.set(value);
                default -> {
                    return false;
                }
            }
            return true;
        }

        @Override
        public double value() {
            return gauge.value();
        }

        @Override
        public void remove() {
            gauge.remove();
            families.release(family, labels);
        }
    }

    /** A histogram. */
    record OfHistogram(
            MetricFamilies families,
            MetricFamilies.Family family,
            Map<String, String> labels,
            Metrics.Histogram histogram)
            implements MetricUse {
        @Override
        public boolean change(int operation, double value) {
            if (operation != MetricFrames.OBSERVE) {
                return false;
            }
            histogram.observe(value);
            return true;
        }

        @Override
        public double value() {
            return histogram.sum();
        }

        @Override
        public boolean hasValue() {
            return false;
        }

        @Override
        public void remove() {
            histogram.remove();
            families.release(family, labels);
        }
    }
}
