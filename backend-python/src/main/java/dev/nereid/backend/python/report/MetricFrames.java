package dev.nereid.backend.python.report;

import static java.util.Objects.requireNonNull;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameSink;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.backend.python.report.MetricFamilies.Family;
import dev.nereid.backend.python.report.MetricFamilies.RefusedException;
import dev.nereid.backend.python.report.MetricUse.Kind;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The metrics of one process. Frames are handled by one thread at a time; {@link #close} may be called by any thread.
 *
 * <p>What cannot be is a reply with an error, which Python raises in the model. Uses of a metric or family that is gone
 * are no error of the protocol: a forked process may use metrics of its parent, which has dropped them.
 */
public final class MetricFrames {
    static final int INCREMENT = 5;
    static final int SET = 6;
    static final int OBSERVE = 7;

    /** The number of families and metrics of a process, each. */
    static final int MAX_METRICS = 10_000;

    /** The number of bytes of names, descriptions, labels and buckets of a process. */
    static final int MAX_BYTES = 16 << 20;

    /** The size of the body of a frame: 64 KiB, and the number of the family or the kind. */
    private static final int MAX_BODY = (64 << 10) + 64;

    private static final int FAMILY = 1;
    private static final int DROP_FAMILY = 2;
    private static final int METRIC = 3;
    private static final int DROP_METRIC = 4;
    private static final int VALUE = 8;

    private static final String FAMILIES = "metric families";

    private static final String DELETED =
            "Invalid metric operation as the corresponding 'MetricFamily' has been deleted. The 'MetricFamily'"
                    + " object should be deleted AFTER its corresponding 'Metric' objects have been deleted.";

    private final MetricFamilies families;
    private final FrameSink frames;
    private final FrameWriter writer = new FrameWriter();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final Map<Long, UsedFamily> usedFamilies = new HashMap<>();

    @GuardedBy("lock")
    private final Map<Long, UsedMetric> usedMetrics = new HashMap<>();

    @GuardedBy("lock")
    private long bytes;

    @GuardedBy("lock")
    private boolean closed;

    /** A family with the ids of its metrics. */
    private record UsedFamily(Family family, long bytes, Set<Long> metrics) {}

    /** A metric of a family. */
    private record UsedMetric(MetricUse use, long bytes, long family) {}

    /** Creates the metrics of a process. All processes of the backend share the families; the sink receives REPLY. */
    public MetricFrames(MetricFamilies families, FrameSink frames) {
        this.families = requireNonNull(families, "families");
        this.frames = requireNonNull(frames, "frames");
    }

    /** Handles METRIC. Never blocks. Throws {@link FrameException} if the frame is malformed, or an id is in use. */
    public void onMetric(FrameReader frame) {
        if (frame.remaining() > MAX_BODY) {
            throw new FrameException("metric: " + frame.remaining() + " bytes (expected: at most " + MAX_BODY + ")");
        }
        long id = frame.id();
        int operation = frame.flags();
        switch (operation) {
            case FAMILY -> addFamily(id, frame);
            case DROP_FAMILY -> dropFamily(id);
            case METRIC -> addMetric(id, frame);
            case DROP_METRIC -> dropMetric(id);
            case INCREMENT, SET, OBSERVE -> change(id, operation, frame.f64("value of a metric"));
            case VALUE -> value(id, frame.u64("metric"));
            default -> throw new FrameException("operation of a metric: " + operation + " (expected: 1 to 8)");
        }
    }

    private void addFamily(long id, FrameReader frame) {
        long size = frame.remaining();
        long number = frame.u32("kind of a family");
        Kind[] kinds = Kind.values();
        if (number >= kinds.length) {
            throw new FrameException("kind of a family: " + number + " (expected: 0 to 2)");
        }
        String name = frame.text("name of a family");
        String description = frame.text("description of a family");
        try {
            admit(FAMILIES, id, size);
            Family family = families.family(kinds[(int) number], name, description);
            if (!add(id, new UsedFamily(family, size, new HashSet<>()))) {
                families.release(family);
            }
        } catch (RefusedException e) {
            reply(id, 0, e.text());
            return;
        }
        reply(id, 0, "");
    }

    private void addMetric(long id, FrameReader frame) {
        long size = frame.remaining();
        long familyId = frame.u64("family of a metric");
        Map<String, String> labels = Map.copyOf(frame.map("labels of a metric"));
        double[] bounds = new double[frame.entries("buckets of a metric", Double.BYTES)];
        for (int i = 0; i < bounds.length; i++) {
            bounds[i] = frame.f64("buckets of a metric");
        }
        try {
            admit("metrics", id, size);
            Family family = family(familyId);
            if (family.kind != Kind.HISTOGRAM && bounds.length > 0) {
                throw new FrameException("buckets of a metric: " + bounds.length + " (expected: none of a "
                        + (family.kind == Kind.COUNTER ? "counter" : "gauge") + ")");
            }
            MetricUse use = families.metric(family, labels, bounds);
            if (!add(id, new UsedMetric(use, size, familyId))) {
                use.remove();
            }
        } catch (RefusedException e) {
            reply(id, 0, e.text());
            return;
        }
        reply(id, 0, "");
    }

    /** Checks an id, and whether there is space. */
    private void admit(String kind, long id, long size) throws RefusedException {
        lock.lock();
        try {
            if (usedFamilies.containsKey(id) || usedMetrics.containsKey(id)) {
                throw new FrameException("id of a metric: " + id + " (expected: one that is not in use)");
            }
            if ((kind.equals(FAMILIES) ? usedFamilies : usedMetrics).size() >= MAX_METRICS) {
                throw new RefusedException("The process has " + MAX_METRICS + " " + kind + " (expected: fewer)");
            }
            if (bytes + size > MAX_BYTES) {
                throw new RefusedException(
                        "Names, descriptions, labels and buckets of the metrics of the process have more" + " than "
                                + (MAX_BYTES >> 20) + " MiB");
            }
        } finally {
            lock.unlock();
        }
    }

    private Family family(long id) throws RefusedException {
        lock.lock();
        try {
            UsedFamily used = usedFamilies.get(id);
            if (used == null) {
                throw new RefusedException(DELETED);
            }
            return used.family();
        } finally {
            lock.unlock();
        }
    }

    /** Adds a family; {@code false} if the process has ended. */
    private boolean add(long id, UsedFamily used) {
        lock.lock();
        try {
            if (!closed) {
                usedFamilies.put(id, used);
                bytes += used.bytes();
            }
            return !closed;
        } finally {
            lock.unlock();
        }
    }

    /** Adds a metric; {@code false} if the process has ended. */
    private boolean add(long id, UsedMetric used) {
        lock.lock();
        try {
            UsedFamily family = usedFamilies.get(used.family());
            if (closed || family == null) {
                return false;
            }
            usedMetrics.put(id, used);
            family.metrics().add(id);
            bytes += used.bytes();
            return true;
        } finally {
            lock.unlock();
        }
    }

    private void dropFamily(long id) {
        List<MetricUse> dropped = new ArrayList<>();
        UsedFamily family;
        lock.lock();
        try {
            family = usedFamilies.remove(id);
            if (family == null) {
                return;
            }
            bytes -= family.bytes();
            for (long metric : family.metrics()) {
                UsedMetric used = usedMetrics.remove(metric);
                if (used != null) {
                    bytes -= used.bytes();
                    dropped.add(used.use());
                }
            }
        } finally {
            lock.unlock();
        }
        dropped.forEach(MetricUse::remove);
        families.release(family.family());
    }

    private void dropMetric(long id) {
        UsedMetric used;
        lock.lock();
        try {
            used = usedMetrics.remove(id);
            if (used == null) {
                return;
            }
            bytes -= used.bytes();
            UsedFamily family = usedFamilies.get(used.family());
            if (family != null) {
                family.metrics().remove(id);
            }
        } finally {
            lock.unlock();
        }
        used.use().remove();
    }

    private void change(long id, int operation, double value) {
        MetricUse use = metric(id);
        if (use != null && !use.change(operation, value)) {
            throw new FrameException("operation of a metric: " + operation + " (expected: one that its kind has)");
        }
    }

    private void value(long question, long id) {
        MetricUse use = metric(id);
        if (use == null) {
            reply(question, 0, DELETED);
        } else if (use.hasValue()) {
            reply(question, use.value(), "");
        } else {
            throw new FrameException("operation of a metric: " + VALUE + " (expected: one that its kind has)");
        }
    }

    private @Nullable MetricUse metric(long id) {
        lock.lock();
        try {
            UsedMetric used = usedMetrics.get(id);
            return used == null ? null : used.use();
        } finally {
            lock.unlock();
        }
    }

    private void reply(long id, double value, String error) {
        frames.send(writer.begin(FrameType.REPLY, error.isEmpty() ? 0 : 1, 0, id)
                .f64(value)
                .text(error)
                .end());
    }

    /** Removes the metrics and families of the process, which has ended. Later frames and calls have no effect. */
    public void close() {
        List<MetricUse> metrics = new ArrayList<>();
        List<Family> used = new ArrayList<>();
        lock.lock();
        try {
            closed = true;
            usedMetrics.values().forEach(metric -> metrics.add(metric.use()));
            usedFamilies.values().forEach(family -> used.add(family.family()));
            usedMetrics.clear();
            usedFamilies.clear();
            bytes = 0;
        } finally {
            lock.unlock();
        }
        metrics.forEach(MetricUse::remove);
        used.forEach(families::release);
    }
}
