package dev.nereid.spi;

import java.util.Arrays;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/** Counts metrics that are not published. Safe for use by any thread; never blocks. */
@Incubating
final class CountingMetrics implements Metrics {
    private static final Pattern NAME = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*");
    private static final Pattern LABEL = Pattern.compile("(?!__)[a-zA-Z_][a-zA-Z0-9_]*");

    private final ConcurrentMap<String, Family> families = new ConcurrentHashMap<>();
    private final ConcurrentMap<Series, Object> metrics = new ConcurrentHashMap<>();

    private enum Kind {
        COUNTER,
        GAUGE,
        HISTOGRAM
    }

    /** The common part of all metrics of a name. */
    private record Family(Kind kind, String description, Set<String> labels) {}

    /** Identifies a metric. */
    private record Series(String name, Map<String, String> labels) {}

    @Override
    public Counter counter(String name, String description, Map<String, String> labels) {
        return metric(Kind.COUNTER, name, description, labels, Count.class, Count::new);
    }

    @Override
    public Gauge gauge(String name, String description, Map<String, String> labels) {
        return metric(Kind.GAUGE, name, description, labels, Level.class, Level::new);
    }

    @Override
    public Histogram histogram(String name, String description, Map<String, String> labels, double... buckets) {
        for (int i = 0; i < buckets.length; i++) {
            if (Double.isNaN(buckets[i]) || (i > 0 && !(buckets[i] > buckets[i - 1]))) {
                throw invalid(name, "buckets " + Arrays.toString(buckets) + " (expected: numbers in ascending order)");
            }
        }
        Distribution found = metric(
                Kind.HISTOGRAM, name, description, labels, Distribution.class, () -> new Distribution(buckets.clone()));
        if (!Arrays.equals(found.bounds, buckets)) {
            throw invalid(
                    name,
                    "buckets " + Arrays.toString(buckets) + " (expected: " + Arrays.toString(found.bounds)
                            + ", as it was created)");
        }
        return found;
    }

    private <T> T metric(
            Kind kind,
            String name,
            String description,
            Map<String, String> labels,
            Class<T> type,
            Supplier<? extends T> created) {
        checkNames(name, labels);
        Map<String, String> copy = Map.copyOf(labels);
        Family family = new Family(kind, description, copy.keySet());
        Family known = families.putIfAbsent(name, family);
        if (known != null && !known.equals(family)) {
            throw invalid(name, family + " (expected: " + known + ", as it was created)");
        }
        return type.cast(metrics.computeIfAbsent(new Series(name, copy), _ -> created.get()));
    }

    private static void checkNames(String name, Map<String, String> labels) {
        if (!NAME.matcher(name).matches() || name.startsWith("nv_") || name.startsWith("nereid_")) {
            throw invalid(
                    name,
                    "no valid name (expected: letters, digits, '_' and ':', not beginning with a digit, with"
                            + " nv_ or with nereid_)");
        }
        for (String label : labels.keySet()) {
            if (!LABEL.matcher(label).matches()) {
                throw invalid(
                        name,
                        "label '" + label + "' (expected: letters, digits and '_', not beginning with a digit or __)");
            }
        }
    }

    private static BackendException invalid(String name, String problem) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, "metric '" + name + "': " + problem);
    }

    /** The number of a counter. */
    static final class Count implements Counter {
        private final DoubleAdder sum = new DoubleAdder();

        @Override
        public void increment(double amount) {
            if (!(amount >= 0)) {
                throw new IllegalArgumentException("amount: " + amount + " (expected: 0 or more)");
            }
            sum.add(amount);
        }

        double value() {
            return sum.sum();
        }
    }

    /** The number of a gauge. */
    static final class Level implements Gauge {
        private final AtomicLong bits = new AtomicLong();

        @Override
        public void set(double value) {
            bits.set(Double.doubleToRawLongBits(value));
        }

        @Override
        public void increment(double amount) {
            bits.updateAndGet(before -> Double.doubleToRawLongBits(Double.longBitsToDouble(before) + amount));
        }

        double value() {
            return Double.longBitsToDouble(bits.get());
        }
    }

    /** The values of a histogram by bucket; the last bucket has no bound. */
    static final class Distribution implements Histogram {
        private final double[] bounds;
        private final LongAdder[] counts;

        Distribution(double[] bounds) {
            this.bounds = bounds;
            counts = new LongAdder[bounds.length + 1];
            Arrays.setAll(counts, _ -> new LongAdder());
        }

        @Override
        public void observe(double value) {
            int bucket = 0;
            while (bucket < bounds.length && !(value <= bounds[bucket])) {
                bucket++;
            }
            counts[bucket].increment();
        }

        long[] counts() {
            return Arrays.stream(counts).mapToLong(LongAdder::sum).toArray();
        }
    }
}
