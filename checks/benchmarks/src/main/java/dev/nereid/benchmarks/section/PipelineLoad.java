package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.micro.CompletionObserver;
import dev.nereid.benchmarks.micro.IdleModel;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.statistics.MeterReading;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.Semaphore;

/** Sends requests through two models in process: each response of the first one causes a request to the second. */
final class PipelineLoad {
    /** The number of requests in flight, over all submitting threads. */
    static final int IN_FLIGHT = 64;

    private static final int SUBMITTERS = 2;

    /** Hops that are recorded; a power of two, later ones replace earlier ones. */
    private static final int RECORDED = 1 << 16;

    /**
     * The result of a run.
     *
     * @param perSecond requests through both models
     * @param firstBatch the mean batch of the first model, in requests
     * @param secondBatch the mean batch of the second model
     * @param hopMicros the median time from the response of the first model to the execution of the second
     */
    record Result(double perSecond, double firstBatch, double secondBatch, double hopMicros) {}

    private final long[] hops = new long[RECORDED];

    /** When the last execution of the second model began; the thread of its one instance delivers the responses. */
    private volatile long executedNanos;

    /** The number of hops; written by one thread at a time, that of the second model's execution. */
    private volatile int recorded;

    private PipelineLoad() {}

    /** Runs the load; the first part of the time warms up and is not measured. */
    static Result run(Duration warmUp, Duration time) throws InterruptedException {
        return new PipelineLoad().load(warmUp, time);
    }

    private Result load(Duration warmUp, Duration time) throws InterruptedException {
        try (IdleModel first = new IdleModel(false);
                IdleModel second = new IdleModel(true, batch -> executedNanos = System.nanoTime())) {
            List<Submitter> submitters = new ArrayList<>();
            for (int i = 0; i < SUBMITTERS; i++) {
                submitters.add(new Submitter(first, second));
            }
            submitters.forEach(submitter -> submitter.thread.start());
            Thread.sleep(warmUp);
            MeterReading firstBefore = first.scheduler().statistics();
            MeterReading secondBefore = second.scheduler().statistics();
            recorded = 0;
            long start = System.nanoTime();
            Thread.sleep(time);
            double seconds = (System.nanoTime() - start) / 1e9;
            MeterReading firstAfter = first.scheduler().statistics();
            MeterReading secondAfter = second.scheduler().statistics();
            long[] measured = Arrays.copyOf(hops, Math.min(recorded, RECORDED));
            for (Submitter submitter : submitters) {
                submitter.stop();
            }
            Arrays.sort(measured);
            double done = inferences(secondAfter) - inferences(secondBefore);
            return new Result(
                    done / seconds,
                    (inferences(firstAfter) - inferences(firstBefore))
                            / (executions(firstAfter) - executions(firstBefore)),
                    done / (executions(secondAfter) - executions(secondBefore)),
                    measured[measured.length / 2] / 1e3);
        }
    }

    private static double inferences(MeterReading reading) {
        return reading.executions().inferenceCount();
    }

    private static double executions(MeterReading reading) {
        return reading.executions().executionCount();
    }

    private void record(long nanos) {
        int index = recorded;
        hops[index & (RECORDED - 1)] = nanos;
        recorded = index + 1 < 0 ? RECORDED : index + 1;
    }

    /** A thread with its share of the requests in flight. */
    private final class Submitter {
        private final Semaphore free = new Semaphore(IN_FLIGHT / SUBMITTERS);
        private final ModelScheduler first;
        private final IdleModel firstModel;
        private final IdleModel secondModel;
        private final Thread thread = Thread.ofPlatform().name("submitter").unstarted(this::submit);
        private volatile boolean closed;

        Submitter(IdleModel firstModel, IdleModel secondModel) {
            this.firstModel = firstModel;
            this.secondModel = secondModel;
            first = firstModel.scheduler();
        }

        private void submit() {
            while (!closed) {
                free.acquireUninterruptibly();
                first.submit(firstModel.request(), new CompletionObserver(this::hop));
            }
        }

        private void hop() {
            long now = System.nanoTime(); // once: a further reading would count in the hops of the same batch
            secondModel.scheduler().submit(secondModel.request(now), new CompletionObserver(() -> {
                record(executedNanos - now);
                free.release();
            }));
        }

        /** Ends the thread, and waits for its requests in flight. */
        void stop() throws InterruptedException {
            closed = true;
            thread.join();
            free.acquireUninterruptibly(IN_FLIGHT / SUBMITTERS);
        }
    }
}
