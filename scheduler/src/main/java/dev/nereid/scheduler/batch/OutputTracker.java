package dev.nereid.scheduler.batch;

import dev.nereid.api.BestEffort;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import java.util.Collection;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tracks outputs that differ from the configuration or are large. It logs the former, and learns the input size that
 * leads to the latter. Lock-free; safe for use by any thread.
 *
 * <p>Responses with outputs that do not match the configuration, or lack some, are sent all the same, as the reference
 * server does; each output is logged once. Requests as large as one that needed large outputs are excluded from direct
 * execution: submitting threads have no time to clear that memory.
 */
public final class OutputTracker {
    private static final Logger LOG = LoggerFactory.getLogger(OutputTracker.class);

    /** Larger outputs count as large, in bytes. */
    private static final long LARGE_BYTES = 256 << 10;

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

    /** Receives reports of unexpected outputs. */
    interface Reports {
        /** Reports an output. */
        void report(ModelSettings settings, OutputSpec output, String configured, String given, String problem);
    }

    /**
     * Creates a tracker that logs its reports.
     *
     * @param outputs the outputs of the model, in the order of their indices
     */
    OutputTracker(ModelSettings settings, Collection<OutputSpec> outputs) {
        this(settings, outputs, OutputTracker::log);
    }

    /** Creates a tracker with another receiver of reports. */
    OutputTracker(ModelSettings settings, Collection<OutputSpec> outputs, Reports reports) {
        this.settings = settings;
        this.reports = reports;
        this.outputs = outputs.toArray(OutputSpec[]::new);
        logged = new AtomicIntegerArray(this.outputs.length);
    }

    /** Records memory for an output of a request. */
    void recordAllocation(CheckedRequest request, long byteSize) {
        if (byteSize > LARGE_BYTES) {
            largeFrom.accumulateAndGet(request.inputBytes(), Math::min);
        }
    }

    /** Returns whether a request probably needs large outputs. */
    public boolean isLarge(long inputBytes) {
        return inputBytes >= largeFrom.get();
    }

    /** Reports an output whose shape for clients does not match the configuration. */
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
        if (request.requestsOutput(output.tensor().name()) && isNew(output, MISSING)) {
            report(output, output.dims().toString(), "nothing", "output missing from a response");
        }
    }

    /** Reports an output. A failure of the report does not fail the request. */
    private void report(OutputSpec output, String configured, String given, String problem) {
        BestEffort.run("report of an output", () -> reports.report(settings, output, configured, given, problem));
    }

    private static void log(
            ModelSettings settings, OutputSpec output, String configured, String given, String problem) {
        LOG.atWarn()
                .addKeyValue("model", settings.name())
                .addKeyValue("version", settings.version())
                .addKeyValue("output", output.tensor().name())
                .addKeyValue("configured", configured)
                .addKeyValue("given", given)
                .log(problem);
    }

    private boolean isNew(OutputSpec output, int what) {
        int before = logged.get(output.index());
        return (before & what) == 0
                && (logged.getAndAccumulate(output.index(), what, (old, added) -> old | added) & what) == 0;
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
