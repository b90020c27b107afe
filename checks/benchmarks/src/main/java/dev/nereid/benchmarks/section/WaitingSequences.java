package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.micro.CompletionObserver;
import dev.nereid.benchmarks.micro.IdleModel;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.LongFunction;

/** Measures the cost of waiting sequences: idle ones, and sequences in the backlog. Static functions only. */
final class WaitingSequences {
    /** How many sequences wait. */
    static final int COUNT = 100_000;

    private static final Duration IDLE = Duration.ofSeconds(10);
    private static final int COLLECTIONS = 3;
    private static final int IN_FLIGHT = 512;
    private static final double PERCENT = 100;

    /** Cost of idle sequences: heap and other memory of each, and the use of one processor by all. */
    record Idle(double heapBytes, double otherBytes, double processorPercent) {}

    private WaitingSequences() {}

    /** Measures sequences that have a slot, and no request. Blocks. */
    static Idle idle() throws InterruptedException {
        try (IdleModel model = IdleModel.ofSequences(SequenceBatching.Strategy.OLDEST, COUNT + 1, _ -> {})) {
            start(model, COUNT, 1);
            long before = heapBytes();
            long otherBefore = model.bytesInUse();
            start(model, 0, COUNT);
            double heap = (double) (heapBytes() - before) / COUNT;
            double other = (double) (model.bytesInUse() - otherBefore) / COUNT;
            TimeUnit.NANOSECONDS.sleep(IDLE.toNanos()); // the compiler is at work until then
            long used = processorNanos();
            long start = System.nanoTime();
            TimeUnit.NANOSECONDS.sleep(IDLE.toNanos());
            double share = (double) (processorNanos() - used) / (System.nanoTime() - start);
            return new Idle(heap, other, PERCENT * share);
        }
    }

    /** Executes the first request of some sequences. */
    private static void start(IdleModel model, int first, int count) {
        Semaphore free = new Semaphore(IN_FLIGHT);
        CompletionObserver observer = new CompletionObserver(free::release);
        for (int i = first; i < first + count; i++) {
            free.acquireUninterruptibly();
            model.scheduler().submit(model.request(first(i)), observer);
        }
        free.acquireUninterruptibly(IN_FLIGHT);
    }

    private static Sequence first(long number) {
        return new Sequence(new Sequence.Id.Numeric(1 + number), true, false);
    }

    /** Returns the bytes of heap memory of a sequence in the backlog, beyond the bytes of its request. Blocks. */
    static double backlogBytes() throws InterruptedException {
        double requests = waitingBytes(false);
        return waitingBytes(true) - requests;
    }

    /** Returns the bytes of heap memory of each request that waits for an instance that executes another. */
    private static double waitingBytes(boolean ofSequences) throws InterruptedException {
        CountDownLatch executing = new CountDownLatch(1);
        CountDownLatch end = new CountDownLatch(1);
        Semaphore done = new Semaphore(0);
        CompletionObserver observer = new CompletionObserver(done::release);
        try (IdleModel model = ofSequences
                ? IdleModel.ofSequences(SequenceBatching.Strategy.OLDEST, 1, _ -> await(executing, end))
                : new IdleModel(false, _ -> await(executing, end))) {
            LongFunction<CheckedRequest> requests = ofSequences
                    ? number -> model.request(new Sequence(new Sequence.Id.Numeric(1 + number), true, true))
                    : _ -> model.request();
            model.scheduler().submit(requests.apply(COUNT), observer);
            executing.await();
            long before = heapBytes();
            for (int i = 0; i < COUNT; i++) {
                model.scheduler().submit(requests.apply(i), observer);
            }
            double each = (double) (heapBytes() - before) / COUNT;
            end.countDown();
            done.acquireUninterruptibly(COUNT + 1);
            return each;
        }
    }

    private static void await(CountDownLatch executing, CountDownLatch end) {
        executing.countDown();
        try {
            end.await();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static long heapBytes() throws InterruptedException {
        for (int i = 0; i < COLLECTIONS; i++) {
            System.gc();
        }
        return ManagementFactory.getMemoryMXBean().getHeapMemoryUsage().getUsed();
    }

    private static long processorNanos() {
        return ProcessHandle.current()
                .info()
                .totalCpuDuration()
                .orElse(Duration.ZERO)
                .toNanos();
    }
}
