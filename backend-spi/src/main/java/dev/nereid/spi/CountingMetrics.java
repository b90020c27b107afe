package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.lang.System.Logger;
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

/**
 * Counts metrics that are not published. Safe for use by any thread; never blocks.
 *
 * <p>Mistakes are logged and throw nothing: a metric is no reason for a request or a load to fail.
 */
@Incubating
final class CountingMetrics implements Metrics {
    /** The maximum number of mistakes that are logged. A name may be made of anything. */
    static final int MAX_MISTAKES = 100;

    private static final Pattern NAME = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*");
    private static final Pattern LABEL = Pattern.compile("(?!__)[a-zA-Z_][a-zA-Z0-9_]*");

    private static final Pattern UNPRINTABLE = Pattern.compile("\\p{Cntrl}");

    /** The longest text of a plugin that is logged. */
    private static final int MAX_LENGTH = 100;

    private final ConcurrentMap<String, Family> families = new ConcurrentHashMap<>();
    private final ConcurrentMap<Series, Object> metrics = new ConcurrentHashMap<>();

    private final Set<String> mistakes = ConcurrentHashMap.newKeySet();
    private final Logger log;

    /**
     * Creates metrics.
     *
     * @param log receives each mistake, once
     */
    CountingMetrics(Logger log) {
        this.log = log;
    }

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
        return metric(
                Kind.COUNTER, name, description, labels, Count.class, () -> new Count(name, this), Nothing.INSTANCE);
    }

    @Override
    public Gauge gauge(String name, String description, Map<String, String> labels) {
        return metric(Kind.GAUGE, name, description, labels, Level.class, Level::new, Nothing.INSTANCE);
    }

    @Override
    public Histogram histogram(String name, String description, Map<String, String> labels, double... buckets) {
        double[] bounds = buckets.clone();
        for (int i = 0; i < bounds.length; i++) {
            if (Double.isNaN(bounds[i]) || (i > 0 && !(bounds[i] > bounds[i - 1]))) {
                report(name, "buckets " + Arrays.toString(bounds) + " (expected: numbers in ascending order)");
                return Nothing.INSTANCE;
            }
        }
        Histogram found = metric(
                Kind.HISTOGRAM,
                name,
                description,
                labels,
                Distribution.class,
                () -> new Distribution(bounds),
                Nothing.INSTANCE);
        if (found instanceof Distribution known && !Arrays.equals(known.bounds, bounds)) {
            report(
                    name,
                    "buckets " + Arrays.toString(bounds) + " (expected: " + Arrays.toString(known.bounds)
                            + ", as it was created)");
            return Nothing.INSTANCE;
        }
        return found;
    }

    /** Returns a metric; {@code otherwise} in place of one that cannot be. */
    private <M, T extends M> M metric(
            Kind kind,
            String name,
            String description,
            Map<String, String> labels,
            Class<T> type,
            Supplier<? extends T> created,
            M otherwise) {
        Family family = new Family(
                kind,
                requireNonNull(description, "description"),
                Map.copyOf(labels).keySet());
        String problem = problem(name, family.labels());
        if (problem.isEmpty()) {
            Family known = families.putIfAbsent(name, family);
            problem = known == null || known.equals(family)
                    ? ""
                    : quoted(family.toString()) + " (expected: " + quoted(known.toString()) + ", as it was created)";
        }
        if (!problem.isEmpty()) {
            report(name, problem);
            return otherwise;
        }
        return type.cast(metrics.computeIfAbsent(new Series(name, Map.copyOf(labels)), _ -> created.get()));
    }

    /** Returns what is wrong with names; empty for nothing. */
    private static String problem(String name, Set<String> labels) {
        if (!NAME.matcher(name).matches() || name.startsWith("nv_") || name.startsWith("nereid_")) {
            return "no valid name (expected: letters, digits, '_' and ':', not beginning with a digit, with"
                    + " nv_ or with nereid_)";
        }
        for (String label : labels) {
            if (!LABEL.matcher(label).matches()) {
                return "label '" + quoted(label)
                        + "' (expected: letters, digits and '_', not beginning with a digit or __)";
            }
        }
        return "";
    }

    /** Logs a mistake, unless it is known or there were many. */
    private void report(String name, String problem) {
        String text = "metric '" + quoted(name) + "' counts nothing: " + problem;
        if (mistakes.size() < MAX_MISTAKES && mistakes.add(text)) {
            log.log(Logger.Level.WARNING, text);
        }
    }

    /** Logs that a counter was to fall. */
    private void reportAmount(String name) {
        if (mistakes.size() < MAX_MISTAKES && mistakes.add(name)) {
            log.log(Logger.Level.WARNING, "metric '" + name + "': a negative amount is ignored (expected: 0 or more)");
        }
    }

    /** Returns a name without line breaks and the like, of limited length. */
    private static String quoted(String name) {
        return UNPRINTABLE
                .matcher(name.substring(0, Math.min(name.length(), MAX_LENGTH)))
                .replaceAll("?");
    }

    /** A metric in place of one that cannot be. */
    private enum Nothing implements Counter, Gauge, Histogram {
        INSTANCE;

        @Override
        public void increment(double amount) {}

        @Override
        public void set(double value) {}

        @Override
        public void observe(double value) {}
    }

    /** The number of a counter. */
    static final class Count implements Counter {
        private final DoubleAdder sum = new DoubleAdder();
        private final String name;
        private final CountingMetrics metrics;

        Count(String name, CountingMetrics metrics) {
            this.name = name;
            this.metrics = metrics;
        }

        @Override
        public void increment(double amount) {
            if (amount >= 0) {
                sum.add(amount);
            } else {
                metrics.reportAmount(name);
            }
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
