package dev.nereid.scheduler.batch;

import dev.nereid.api.BestEffort;
import dev.nereid.api.Quoted;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import java.util.Arrays;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tracks outputs that differ from the configuration or are large. It logs the former, and learns the input size that
 * leads to large outputs. Lock-free; safe for use by any thread.
 *
 * <p>Responses with outputs that do not match the configuration, or lack some, are sent all the same, as the reference
 * server does, and outputs that the configuration does not have are dropped; each output is logged once. For tests of
 * models all of them are errors of the backend. Requests as large as one that needed large outputs are excluded from direct
 * execution: submitting threads have no time to clear that memory.
 */
public final class OutputTracker {
    private static final Logger LOG = LoggerFactory.getLogger(OutputTracker.class);

    /** Larger outputs count as large, in bytes. */
    private static final long LARGE_BYTES = 256 << 10;

    /** The maximum number of unknown outputs that are logged: their names may follow from requests. */
    private static final int MAX_UNKNOWN = 16;

    private static final int MISFIT = 1;
    private static final int MISSING = 2;
    private static final int MISTYPED = 4;

    private final ModelSettings settings;

    /** The problems logged of each output, by its index. */
    private final AtomicIntegerArray logged;

    /** The minimum input bytes of a request that needed a large output. */
    private final AtomicLong largeFrom = new AtomicLong(Long.MAX_VALUE);

    private final OutputSpec[] outputs;
    private final Reports reports;

    /** {@code true} if wrong outputs are errors. */
    private final boolean strict;

    /** The outputs logged that the configuration does not have, at most {@link #MAX_UNKNOWN}. */
    private final Set<String> unknown = ConcurrentHashMap.newKeySet();

    /** Receives reports of unexpected outputs. */
    interface Reports {
        void report(ModelSettings settings, OutputSpec output, String configured, String actual, String problem);
    }

    /** Creates a tracker that logs its reports, of the outputs of the model in the order of their indices. */
    OutputTracker(ModelSettings settings, Collection<OutputSpec> outputs) {
        this(settings, outputs, OutputTracker::log);
    }

    /** Creates a tracker for which wrong outputs are errors of the backend. */
    static OutputTracker strict(ModelSettings settings, Collection<OutputSpec> outputs) {
        return new OutputTracker(settings, outputs, OutputTracker::log, true);
    }

    OutputTracker(ModelSettings settings, Collection<OutputSpec> outputs, Reports reports) {
        this(settings, outputs, reports, false);
    }

    private OutputTracker(ModelSettings settings, Collection<OutputSpec> outputs, Reports reports, boolean strict) {
        this.strict = strict;
        this.settings = settings;
        this.reports = reports;
        this.outputs = outputs.toArray(OutputSpec[]::new);
        logged = new AtomicIntegerArray(this.outputs.length);
    }

    void recordAllocation(CheckedRequest request, long byteSize) {
        if (byteSize > LARGE_BYTES) {
            largeFrom.accumulateAndGet(request.inputBytes(), Math::min);
        }
    }

    /** Returns whether a request probably needs large outputs. */
    public boolean isLarge(long inputBytes) {
        return inputBytes >= largeFrom.get();
    }

    /**
     * Reports an output with a shape for clients that does not match the configuration.
     *
     * @throws BackendException if wrong outputs are errors; the other methods throw it, too
     */
    void checkShape(int index, Shape shape) {
        OutputSpec output = outputs[index];
        if (!fits(output, shape) && isNew(output, MISFIT)) {
            report(output, output.dims().toString(), shape.toString(), "output does not fit the configuration");
        }
    }

    /** Reports an output of another type than configured. */
    void checkType(int index, DataType type) {
        OutputSpec output = outputs[index];
        if (type != output.tensor().type() && isNew(output, MISTYPED)) {
            report(output, output.tensor().type().name(), type.name(), "output has another type than configured");
        }
    }

    /** Reports an output that a response lacks, if its client requested it. */
    void logMissing(int index, CheckedRequest request) {
        OutputSpec output = outputs[index];
        if (strict && settings.decoupled()) {
            return; // its responses may have different outputs
        }
        if (request.requestsOutput(output.tensor().name()) && isNew(output, MISSING)) {
            report(output, output.dims().toString(), "nothing", "output missing from a response");
        }
    }

    /** Reports an output that the configuration does not have. */
    void reportUnknown(OutputSpec output) {
        String name = output.tensor().name();
        if (strict) {
            throw SchedulerErrors.output(settings, name, "not in the configuration (expected: one of " + names() + ")");
        }
        if (unknown.size() < MAX_UNKNOWN && unknown.add(name)) {
            report(
                    output,
                    "nothing",
                    output.tensor().type() + " " + output.tensor().dims(),
                    "output dropped, which is not in the configuration");
        }
    }

    private List<String> names() {
        return Arrays.stream(outputs).map(output -> output.tensor().name()).toList();
    }

    /** Reports an output. A failure of the report does not fail the request. */
    private void report(OutputSpec output, String configured, String actual, String problem) {
        if (strict) {
            throw SchedulerErrors.output(
                    settings, output.tensor().name(), actual + " (expected: " + configured + "): " + problem);
        }
        BestEffort.run("report of an output", () -> reports.report(settings, output, configured, actual, problem));
    }

    private static void log(
            ModelSettings settings, OutputSpec output, String configured, String actual, String problem) {
        LOG.atWarn()
                .addKeyValue("model", settings.name())
                .addKeyValue("version", settings.version())
                .addKeyValue("output", Quoted.text(output.tensor().name()))
                .addKeyValue("configured", configured)
                .addKeyValue("given", actual)
                .log(
                        problem + " (model '{}', version {}, output '{}', configured {}, given {})",
                        settings.name(),
                        settings.version(),
                        output.tensor().name(),
                        configured,
                        actual);
    }

    private boolean isNew(OutputSpec output, int what) {
        int before = strict ? 0 : logged.get(output.index());
        return (before & what) == 0
                && (strict || (logged.getAndAccumulate(output.index(), what, (old, added) -> old | added) & what) == 0);
    }

    /** Returns whether a shape matches. Does not allocate, since it runs for each output of each response. */
    private static boolean fits(OutputSpec output, Shape shape) {
        Shape dims = output.tensor().dims();
        int batch = output.batched() ? 1 : 0;
        if (shape.rank() != dims.rank() + batch) {
            return false;
        }
        for (int i = 0; i < dims.rank(); i++) {
            if (dims.dim(i) != Shape.VARIABLE && dims.dim(i) != shape.dim(i + batch)) {
                return false;
            }
        }
        return true;
    }
}
