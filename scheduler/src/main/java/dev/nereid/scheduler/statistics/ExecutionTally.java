package dev.nereid.scheduler.statistics;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.spi.Device;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/**
 * Collects the statistics of one execution. Confined to the thread that ends the execution. All times are on the scale
 * of {@link System#nanoTime()}.
 *
 * <p>An execution has three parts: inputs are prepared until {@code inputsNanos}, outputs are computed until
 * {@code outputsNanos}, and the rest. Times that are out of order are clamped to the nearest time in order.
 */
public final class ExecutionTally {
    /** Stands for an execution on the CPU, or on no instance. */
    static final int NO_GPU = -1;

    private final long startNanos;
    private final long endNanos;
    final long inputNanos;
    final long inferNanos;
    final long outputNanos;
    int gpu = NO_GPU;
    int executedItems;
    int successes;
    long items;
    long requestNanos;
    long requestMicros;
    long queueNanos;
    long queueMicros;
    long failedNanos;

    /** Replaced at the first failure: most executions have none. */
    Map<FailureReason, Integer> failures = Map.of();

    /** Creates a tally with the times of start, prepared inputs, computed outputs and completion of requests. */
    public ExecutionTally(long startNanos, long inputsNanos, long outputsNanos, long endNanos) {
        long whole = Math.max(0, endNanos - startNanos);
        long inputs = Math.clamp(inputsNanos - startNanos, 0, whole);
        long outputs = Math.clamp(outputsNanos - startNanos, inputs, whole);
        this.startNanos = startNanos;
        this.endNanos = endNanos;
        this.inputNanos = inputs;
        this.inferNanos = outputs - inputs;
        this.outputNanos = whole - outputs;
    }

    /** Creates a tally with sums as parts, which may exceed the whole. */
    ExecutionTally(long startNanos, long endNanos, long inputNanos, long inferNanos, long outputNanos) {
        this.startNanos = startNanos;
        this.endNanos = endNanos;
        this.inputNanos = inputNanos;
        this.inferNanos = inferNanos;
        this.outputNanos = outputNanos;
    }

    /** Passes the times of the parts to a listener. */
    public void report(StepObserver listener) {
        listener.computed(inputNanos, inferNanos, outputNanos);
    }

    public void ranOn(Device device) {
        gpu = device.kind() == Device.Kind.GPU ? device.id() : NO_GPU;
    }

    /** Counts the execution itself, with the items of all requests, successful or not, unless its backend failed. */
    public void executed(int batchSize) {
        executedItems = batchSize;
    }

    /** Counts a successful request with its number of items. */
    public void succeeded(int batchSize, long arrivedNanos, long queuedNanos) {
        long request = Math.max(0, endNanos - arrivedNanos);
        long queue = Math.max(0, startNanos - queuedNanos);
        successes++;
        items += batchSize;
        requestNanos += request;
        requestMicros += TimeUnit.NANOSECONDS.toMicros(request);
        queueNanos += queue;
        queueMicros += TimeUnit.NANOSECONDS.toMicros(queue);
    }

    /** Counts a failed request. */
    public void failed(FailureReason reason, long arrivedNanos) {
        if (failures.isEmpty()) {
            failures = new EnumMap<>(FailureReason.class);
        }
        failures.merge(reason, 1, Integer::sum);
        failedNanos += Math.max(0, endNanos - arrivedNanos);
    }

    /** Sums the compute times of requests that another request caused, such as ensemble steps. Not thread-safe. */
    public static final class Totals {
        private long inputNanos;
        private long inferNanos;
        private long outputNanos;

        /** Adds the times of one request, in nanoseconds. */
        public void add(long input, long infer, long output) {
            inputNanos += input;
            inferNanos += infer;
            outputNanos += output;
        }

        /** Returns a tally with these times, from the first step's submission to the request's completion. */
        public ExecutionTally tally(long startNanos, long endNanos) {
            return new ExecutionTally(startNanos, endNanos, inputNanos, inferNanos, outputNanos);
        }
    }
}
