package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.lang.System.Logger;
import java.util.Arrays;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.atomic.DoubleAdder;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Counts metrics that are not published. Safe for use by any thread; never blocks.
 *
 * <p>Mistakes are logged and throw nothing: a metric is no reason for a request or a load to fail. A metric is removed with
 * its last user, and its name is free with its last metric.
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

    /** By name; one without a metric is not there. */
    private final ConcurrentMap<String, Family> families = new ConcurrentHashMap<>();

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

    /**
     * All metrics of a name, by their labels. They change only while the map of families is updated at the name.
     *
     * @param kind the kind of the first one
     * @param description that of the first one
     */
    private record Family(Kind kind, String description, ConcurrentMap<Map<String, String>, Series> series) {}

    /** A metric. Lock-free: with its last user it is lost, and then never used again. */
    private static final class Series {
        final String name;
        final Map<String, String> labels;
        final Object numbers;

        private final AtomicLong users = new AtomicLong(1);

        Series(String name, Map<String, String> labels, Object numbers) {
            this.name = name;
            this.labels = labels;
            this.numbers = numbers;
        }

        /** Adds a user; {@code false} if the metric is lost. */
        boolean tryUse() {
            return users.getAndUpdate(count -> count == 0 ? 0 : count + 1) > 0;
        }

        /** Removes a user, and returns whether it was the last one. */
        boolean release() {
            return users.decrementAndGet() == 0;
        }
    }

    @Override
    public Counter counter(String name, String description, Map<String, String> labels) {
        return use(Kind.COUNTER, name, description, labels, DoubleAdder::new)
                .<Counter>map(use -> new Count(use, (DoubleAdder) use.series.numbers))
                .orElse(Nothing.INSTANCE);
    }

    @Override
    public Gauge gauge(String name, String description, Map<String, String> labels) {
        return use(Kind.GAUGE, name, description, labels, AtomicLong::new)
                .<Gauge>map(use -> new Level(use, (AtomicLong) use.series.numbers))
                .orElse(Nothing.INSTANCE);
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
        Optional<Use> use = use(Kind.HISTOGRAM, name, description, labels, () -> new Buckets(bounds));
        if (use.isEmpty()) {
            return Nothing.INSTANCE;
        }
        Distribution found = new Distribution(use.get(), (Buckets) use.get().series.numbers);
        if (!Arrays.equals(found.buckets.bounds, bounds)) {
            report(
                    name,
                    "buckets " + Arrays.toString(bounds) + " (expected: " + Arrays.toString(found.buckets.bounds)
                            + ", as it was created)");
            found.remove();
            return Nothing.INSTANCE;
        }
        return found;
    }

    /** Adds a user of a metric, which is created where it is missing. Empty if it cannot be. */
    private Optional<Use> use(
            Kind kind, String name, String description, Map<String, String> labels, Supplier<Object> numbers) {
        requireNonNull(description, "description");
        Map<String, String> copy = Map.copyOf(labels);
        String problem = problem(name, copy.keySet());
        if (!problem.isEmpty()) {
            report(name, problem);
            return Optional.empty();
        }
        Family family = families.get(name);
        Series known =
                family == null || family.kind() != kind ? null : family.series().get(copy);
        if (known != null && known.tryUse()) {
            return Optional.of(new Use(this, known));
        }
        AtomicReference<@Nullable Series> used = new AtomicReference<>();
        Family created = families.compute(name, (_, found) -> {
            Family all = found == null ? new Family(kind, description, new ConcurrentHashMap<>()) : found;
            if (all.kind() == kind) {
                used.set(all.series()
                        .compute(
                                copy,
                                (_, present) -> present != null && present.tryUse()
                                        ? present
                                        : new Series(name, copy, numbers.get())));
            }
            return all;
        });
        Series series = used.get();
        if (series == null) {
            report(name, "a " + text(kind) + " (expected: a " + text(created.kind()) + ", as it was created)");
            return Optional.empty();
        }
        return Optional.of(new Use(this, series));
    }

    private static String text(Kind kind) {
        return switch (kind) {
            case COUNTER -> "counter";
            case GAUGE -> "gauge";
            case HISTOGRAM -> "histogram";
        };
    }

    /** Returns the problem with names; empty for none. */
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
        public double value() {
            return 0;
        }

        @Override
        public void increment(double amount) {}

        @Override
        public void set(double value) {}

        @Override
        public void observe(double value) {}

        @Override
        public void remove() {}
    }

    /** The use of a metric by one object of a plugin. Lock-free: it ends once. */
    private static final class Use {
        final Series series;

        private final CountingMetrics metrics;
        private final AtomicBoolean ended = new AtomicBoolean();

        Use(CountingMetrics metrics, Series series) {
            this.metrics = metrics;
            this.series = series;
        }

        boolean isOpen() {
            return !ended.get();
        }

        void end() {
            if (ended.compareAndSet(false, true) && series.release()) {
                metrics.families.computeIfPresent(series.name, (_, family) -> {
                    family.series().remove(series.labels, series); // unless it is another one already
                    return family.series().isEmpty() ? null : family;
                });
            }
        }
    }

    /** A counter of a plugin. */
    private record Count(Use use, DoubleAdder sum) implements Counter {
        @Override
        public double value() {
            return sum.sum();
        }

        @Override
        public void increment(double amount) {
            if (!(amount >= 0)) {
                use.metrics.reportAmount(use.series.name);
            } else if (use.isOpen()) {
                sum.add(amount);
            }
        }

        @Override
        public void remove() {
            use.end();
        }
    }

    /** A gauge of a plugin; the number lies in the bits of an integer. */
    private record Level(Use use, AtomicLong bits) implements Gauge {
        @Override
        public double value() {
            return Double.longBitsToDouble(bits.get());
        }

        @Override
        public void set(double value) {
            if (use.isOpen()) {
                bits.set(Double.doubleToRawLongBits(value));
            }
        }

        @Override
        public void increment(double amount) {
            if (use.isOpen()) {
                bits.updateAndGet(before -> Double.doubleToRawLongBits(Double.longBitsToDouble(before) + amount));
            }
        }

        @Override
        public void remove() {
            use.end();
        }
    }

    /** The values of a histogram by bucket; the last bucket has no bound. */
    private static final class Buckets {
        private final double[] bounds;
        private final LongAdder[] counts;
        private final DoubleAdder sum = new DoubleAdder();

        Buckets(double[] bounds) {
            this.bounds = bounds;
            counts = new LongAdder[bounds.length + 1];
            Arrays.setAll(counts, _ -> new LongAdder());
        }

        void observe(double value) {
            int bucket = 0;
            while (bucket < bounds.length && !(value <= bounds[bucket])) {
                bucket++;
            }
            counts[bucket].increment();
            sum.add(value);
        }
    }

    /** A histogram of a plugin. */
    record Distribution(Use use, Buckets buckets) implements Histogram {
        @Override
        public long count() {
            return Arrays.stream(counts()).sum();
        }

        @Override
        public double sum() {
            return buckets.sum.sum();
        }

        @Override
        public void observe(double value) {
            if (use.isOpen()) {
                buckets.observe(value);
            }
        }

        @Override
        public void remove() {
            use.end();
        }

        long[] counts() {
            return Arrays.stream(buckets.counts).mapToLong(LongAdder::sum).toArray();
        }
    }
}
