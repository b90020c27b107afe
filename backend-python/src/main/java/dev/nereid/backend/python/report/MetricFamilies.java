package dev.nereid.backend.python.report;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.report.MetricUse.Kind;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.Metrics;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import java.util.regex.Pattern;

/**
 * Names of the metrics that all Python models of a backend share. Guarded by its own lock.
 *
 * <p>{@link Metrics} throws nothing: where a metric cannot be created, the result counts nothing. Models get an error
 * instead, so this keeps the kind of each name, and the buckets of each histogram, as long as a process uses it. The
 * rules of names are the same as in {@link Metrics}.
 */
public final class MetricFamilies {
    private static final Pattern NAME = Pattern.compile("[a-zA-Z_:][a-zA-Z0-9_:]*");
    private static final Pattern LABEL = Pattern.compile("(?!__)[a-zA-Z_][a-zA-Z0-9_]*");

    private static final String BUCKET = "le";

    /** The number of characters of a name that errors show. */
    private static final int MAX_LENGTH = 100;

    private final Metrics metrics;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Map<String, Family> families = new HashMap<>();

    /** Creates the families of a backend from its {@link BackendContext#metrics}. */
    public MetricFamilies(Metrics metrics) {
        this.metrics = requireNonNull(metrics, "metrics");
    }

    /** A metric that cannot be. The text is for the model. */
    static final class RefusedException extends Exception {
        private static final long serialVersionUID = 1L;

        private final String text;

        RefusedException(String text) {
            super(text, null, false, false);
            this.text = text;
        }

        String text() {
            return text;
        }
    }

    /** A name. Guarded by the lock of the families. */
    static final class Family {
        final String name;
        final Kind kind;

        /** That of the first user. */
        final String description;

        /** The families and metrics of processes. */
        private int users;

        private final Map<Map<String, String>, Buckets> buckets = new HashMap<>();

        Family(String name, Kind kind, String description) {
            this.name = name;
            this.kind = kind;
            this.description = description;
        }
    }

    /** The buckets of a histogram. Guarded by the lock of the families. */
    private static final class Buckets {
        final double[] bounds;

        private int users;

        Buckets(double[] bounds) {
            this.bounds = bounds;
        }
    }

    /**
     * Adds a user of a family, to be released; the family is created where it is missing.
     *
     * @throws RefusedException if the name is not valid, or has another kind
     */
    Family family(Kind kind, String name, String description) throws RefusedException {
        if (!NAME.matcher(name).matches()) {
            throw new RefusedException("Invalid metric name " + ReportTexts.quoted(name, MAX_LENGTH)
                    + " (expected: letters, digits, '_' and ':', not beginning with a digit)");
        }
        if (name.startsWith("nv_") || name.startsWith("nereid_")) {
            throw new RefusedException("Invalid metric name " + ReportTexts.quoted(name, MAX_LENGTH)
                    + " (expected: not beginning with 'nv_' or 'nereid_', as those of the server)");
        }
        lock.lock();
        try {
            Family family = families.computeIfAbsent(name, _ -> new Family(name, kind, description));
            if (family.kind != kind) {
                throw new RefusedException("Family name already exists with different type");
            }
            family.users++;
            return family;
        } finally {
            lock.unlock();
        }
    }

    void release(Family family) {
        lock.lock();
        try {
            family.users--;
            if (family.users == 0) {
                families.remove(family.name, family);
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Creates a metric with immutable labels, or adds a user of it, to be removed. A histogram keeps its first bounds.
     *
     * @throws RefusedException if a label or the buckets are not valid
     */
    MetricUse metric(Family family, Map<String, String> labels, double[] bounds) throws RefusedException {
        for (String label : labels.keySet()) {
            if (!LABEL.matcher(label).matches() || (family.kind == Kind.HISTOGRAM && label.equals(BUCKET))) {
                throw new RefusedException("Invalid label name " + ReportTexts.quoted(label, MAX_LENGTH)
                        + " (expected: letters, digits and '_', not beginning with a digit or '__', nor '" + BUCKET
                        + "' of a histogram)");
            }
        }
        for (int i = 0; i < bounds.length; i++) {
            if (Double.isNaN(bounds[i]) || (i > 0 && !(bounds[i] > bounds[i - 1]))) {
                throw new RefusedException("Bucket boundaries must be strictly ascending.");
            }
        }
        double[] used = use(family, labels, bounds);
        // Outside of the lock: users are added before the metric is, and removed after it, so that the kinds agree.
        return switch (family.kind) {
            case COUNTER -> {
                Metrics.Counter counter = metrics.counter(family.name, family.description, labels);
                yield new MetricUse.OfCounter(this, family, labels, counter);
            }
            case GAUGE -> {
                Metrics.Gauge gauge = metrics.gauge(family.name, family.description, labels);
                yield new MetricUse.OfGauge(this, family, labels, gauge);
            }
            case HISTOGRAM -> {
                Metrics.Histogram histogram = metrics.histogram(family.name, family.description, labels, used);
                yield new MetricUse.OfHistogram(this, family, labels, histogram);
            }
        };
    }

    /** Adds a user, and returns the buckets. */
    private double[] use(Family family, Map<String, String> labels, double[] bounds) {
        lock.lock();
        try {
            family.users++;
            if (family.kind != Kind.HISTOGRAM) {
                return bounds;
            }
            Buckets buckets = family.buckets.computeIfAbsent(labels, _ -> new Buckets(bounds));
            buckets.users++;
            return buckets.bounds;
        } finally {
            lock.unlock();
        }
    }

    /** Removes a user of a metric, which the metrics of the server do not have any more. */
    void release(Family family, Map<String, String> labels) {
        lock.lock();
        try {
            Buckets buckets = family.buckets.get(labels);
            if (buckets != null && --buckets.users == 0) {
                family.buckets.remove(labels);
            }
        } finally {
            lock.unlock();
        }
        release(family);
    }

    /** Returns the number of names in use. */
    int size() {
        lock.lock();
        try {
            return families.size();
        } finally {
            lock.unlock();
        }
    }
}
