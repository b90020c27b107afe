package dev.nereid.scheduler.statistics;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.ExecutionStatistics;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.GpuCounters;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.MicrosCounters;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ResponseReport;
import java.time.InstantSource;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Collects the statistics of one model version. Safe for use by any thread: guarded by one lock, which is held for sums
 * only, and under which nothing else is called or locked.
 *
 * <p>A request is counted before its completion is delivered: a client that has a response and reads the statistics
 * finds it counted. A reading is consistent: for example, as many requests were computed as succeeded without the
 * cache.
 */
public final class ModelMeter {
    /** The number of response indices with their own statistics. Responses of later indices count with the last. */
    public static final int MAX_INDICES = 16_384;

    private final InstantSource wallClock;
    private final SequenceEnds sequenceEnds = new SequenceEnds();
    private final AtomicLong stateCopies = new AtomicLong();
    private final AtomicLong inputCopies = new AtomicLong();
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final RunningTiming success = new RunningTiming();

    @GuardedBy("lock")
    private final RunningTiming fail = new RunningTiming();

    @GuardedBy("lock")
    private final RunningTiming queue = new RunningTiming();

    @GuardedBy("lock")
    private final RunningTiming cacheHit = new RunningTiming();

    @GuardedBy("lock")
    private final RunningTiming cacheMiss = new RunningTiming();

    @GuardedBy("lock")
    private final ComputeSums requests = new ComputeSums();

    /** By batch size. */
    @GuardedBy("lock")
    private final TreeMap<Integer, ComputeSums> batches = new TreeMap<>();

    @GuardedBy("lock")
    private final ResponseSums responses = new ResponseSums();

    @GuardedBy("lock")
    private final Map<FailureReason, Long> failures = new EnumMap<>(FailureReason.class);

    /** By the number of the GPU. */
    @GuardedBy("lock")
    private final TreeMap<Integer, ComputeSums.OfGpu> gpus = new TreeMap<>();

    @GuardedBy("lock")
    private long requestMicros;

    @GuardedBy("lock")
    private long queueMicros;

    @GuardedBy("lock")
    private long hitMicros;

    @GuardedBy("lock")
    private long missMicros;

    @GuardedBy("lock")
    private long inferences;

    @GuardedBy("lock")
    private long executions;

    @GuardedBy("lock")
    private long lastInferenceMillis;

    /** Creates a meter at zero, with the clock for the ends of executions. */
    public ModelMeter(InstantSource wallClock) {
        this.wallClock = wallClock;
    }

    /** Returns the counts of sequences that ended, always the same object, to count with and to read. */
    public SequenceEnds sequenceEnds() {
        return sequenceEnds;
    }

    /** Returns the number of states of sequences that were copied. */
    public AtomicLong stateCopies() {
        return stateCopies;
    }

    /**
     * Returns the number of inputs of batches that were joined by a copy. Inputs of one request are not copied, and
     * inputs that lie one after the other are not copied.
     */
    public AtomicLong inputCopies() {
        return inputCopies;
    }

    /** Begins to count the executions on a GPU, from zero. */
    public void addInstanceOn(int gpu) {
        lock.lock();
        try {
            gpus.computeIfAbsent(gpu, _ -> new ComputeSums.OfGpu());
        } finally {
            lock.unlock();
        }
    }

    /** Adds an execution and its requests. */
    public void record(ExecutionTally tally) {
        long now = tally.executedItems > 0 ? wallClock.millis() : 0;
        lock.lock();
        try {
            if (tally.executedItems > 0) {
                executions++;
                lastInferenceMillis = Math.max(lastInferenceMillis, now);
                batches.computeIfAbsent(tally.executedItems, _ -> new ComputeSums())
                        .add(tally, 1);
            }
            if (tally.successes > 0) {
                inferences += tally.items;
                success.add(tally.successes, tally.requestNanos);
                queue.add(tally.successes, tally.queueNanos);
                requests.add(tally, tally.successes);
                requestMicros += tally.requestMicros;
                queueMicros += tally.queueMicros;
            }
            if (tally.gpu != ExecutionTally.NO_GPU) {
                gpus.computeIfAbsent(tally.gpu, _ -> new ComputeSums.OfGpu()).add(tally);
            }
            if (!tally.failures.isEmpty()) {
                for (Map.Entry<FailureReason, Integer> failed : tally.failures.entrySet()) {
                    fail(failed.getKey(), failed.getValue());
                }
                fail.add(0, tally.failedNanos);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Adds the time that a device computed after the responses of a recorded execution were delivered. */
    public void computed(ExecutionTally tally, long nanos) {
        lock.lock();
        try {
            ComputeSums batch = batches.get(tally.executedItems);
            if (batch != null) {
                batch.addInfer(nanos, 1);
            }
            success.add(0, tally.successes * nanos);
            requests.addInfer(nanos, tally.successes);
            requestMicros += tally.successes * TimeUnit.NANOSECONDS.toMicros(nanos);
            ComputeSums.OfGpu gpu = gpus.get(tally.gpu);
            if (gpu != null) {
                gpu.addInfer(tally, nanos);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Counts a request that fails outside of an execution, {@code requestNanos} after its arrival. */
    public void failed(FailureReason reason, long requestNanos) {
        lock.lock();
        try {
            fail(reason, 1);
            fail.add(0, Math.max(0, requestNanos));
        } finally {
            lock.unlock();
        }
    }

    /** Counts a cache hit, with the times from being queued to the lookup, of the lookup, and since the arrival. */
    public void hit(long queueNanos, long lookupNanos, long requestNanos) {
        lock.lock();
        try {
            success.add(1, requestNanos);
            queue.add(1, queueNanos);
            cacheHit.add(1, lookupNanos);
            requestMicros += TimeUnit.NANOSECONDS.toMicros(requestNanos);
            queueMicros += TimeUnit.NANOSECONDS.toMicros(queueNanos);
            hitMicros += TimeUnit.NANOSECONDS.toMicros(lookupNanos);
        } finally {
            lock.unlock();
        }
    }

    /** Counts a lookup that found a response for a request which was cancelled meanwhile. */
    public void hitUnused(long lookupNanos) {
        lock.lock();
        try {
            cacheHit.add(1, lookupNanos);
            hitMicros += TimeUnit.NANOSECONDS.toMicros(lookupNanos);
        } finally {
            lock.unlock();
        }
    }

    /** Counts a lookup without a response, however its request ends. The request is counted separately. */
    public void missed(long lookupNanos) {
        lock.lock();
        try {
            cacheMiss.add(1, lookupNanos);
            missMicros += TimeUnit.NANOSECONDS.toMicros(lookupNanos);
        } finally {
            lock.unlock();
        }
    }

    /** Adds a response's insertion into the cache to the miss before it, and both to the time of the request. */
    public void inserted(long lookupNanos, long insertNanos) {
        lock.lock();
        try {
            success.add(0, lookupNanos + insertNanos);
            cacheMiss.add(0, insertNanos);
            requestMicros += TimeUnit.NANOSECONDS.toMicros(lookupNanos + insertNanos);
            missMicros += TimeUnit.NANOSECONDS.toMicros(insertNanos);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Throws unless the times of a reported response are in order.
     *
     * @throws BackendException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} if they are not
     */
    public static void check(ResponseReport report) {
        ResponseSums.check(report);
    }

    /** Counts a response of a decoupled model, by its index from 0, with the checked report of its backend. */
    public void responded(int index, ResponseReport report) {
        lock.lock();
        try {
            responses.add(Math.min(index, MAX_INDICES - 1), report);
        } finally {
            lock.unlock();
        }
    }

    /** Reads a consistent snapshot of the statistics. */
    public MeterReading read() {
        lock.lock();
        try {
            InferenceTimings timings = new InferenceTimings(
                    success.read(), fail.read(), queue.read(), requests.read(), cacheHit.read(), cacheMiss.read());
            MicrosCounters micros = new MicrosCounters(
                    requestMicros,
                    queueMicros,
                    requests.inputMicros,
                    requests.inferMicros,
                    requests.outputMicros,
                    hitMicros,
                    missMicros);
            return new MeterReading(
                    new ExecutionStatistics(lastInferenceMillis, inferences, executions, readBatches()),
                    timings,
                    responses.read(),
                    failures,
                    micros,
                    inputCopies.get(),
                    readGpus());
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private List<GpuCounters> readGpus() {
        List<GpuCounters> read = new ArrayList<>(gpus.size());
        gpus.forEach((gpu, sums) -> read.add(sums.read(gpu)));
        return read;
    }

    @GuardedBy("lock")
    private List<BatchStatistics> readBatches() {
        List<BatchStatistics> read = new ArrayList<>(batches.size());
        batches.forEach((size, sums) -> read.add(new BatchStatistics(size, sums.read())));
        return read;
    }

    @GuardedBy("lock")
    private void fail(FailureReason reason, int count) {
        failures.merge(reason, (long) count, Long::sum);
        fail.add(count, 0);
    }
}
