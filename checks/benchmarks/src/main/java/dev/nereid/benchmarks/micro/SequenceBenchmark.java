package dev.nereid.benchmarks.micro;

import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceBatching;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;

/** The workloads of {@link SchedulerBenchmark}, with requests of sequences. Run by {@code SequenceSection}. */
@OutputTimeUnit(TimeUnit.SECONDS)
public class SequenceBenchmark {
    private static final int LENGTH = 50;

    /** State: a model with one instance thread, and a slot for each request in flight. */
    @State(Scope.Benchmark)
    public static class Model {
        @Param
        public SequenceBatching.Strategy strategy = SequenceBatching.Strategy.OLDEST;

        private final AtomicLong ids = new AtomicLong();

        @SuppressWarnings("NullAway.Init") // By open().
        IdleModel model;

        @Setup
        public void open() {
            model = IdleModel.ofSequences(strategy, SchedulerBenchmark.SUBMITTERS * SchedulerBenchmark.WINDOW, _ -> {});
        }

        @TearDown
        public void close() {
            model.close();
        }
    }

    /** The requests of one sequence after another. Confined to a thread. */
    private static final class Requests {
        private final Model model;
        private Sequence.Id id = new Sequence.Id.Numeric(0);
        private int sent;

        Requests(Model model) {
            this.model = model;
        }

        Sequence next() {
            if (sent == 0) {
                id = new Sequence.Id.Numeric(model.ids.incrementAndGet());
            }
            Sequence next = new Sequence(id, sent == 0, sent == LENGTH - 1);
            sent = (sent + 1) % LENGTH;
            return next;
        }
    }

    /** State: the requests in flight of one thread, each from another sequence. */
    @State(Scope.Thread)
    public static class Window {
        private final Semaphore free = new Semaphore(SchedulerBenchmark.WINDOW);
        private final CompletionObserver observer = new CompletionObserver(free::release);
        private final Requests[] sequences = new Requests[SchedulerBenchmark.WINDOW];
        private int next;

        @Setup
        public void open(Model model) {
            for (int i = 0; i < sequences.length; i++) {
                sequences[i] = new Requests(model);
            }
        }

        @TearDown
        public void close() {
            free.acquireUninterruptibly(SchedulerBenchmark.WINDOW);
        }

        Sequence take() {
            next = (next + 1) % sequences.length;
            return sequences[next].next();
        }
    }

    /** State: a thread that waits for the response to its request. */
    @State(Scope.Thread)
    public static class Waiter {
        private volatile boolean completed;
        private volatile @Nullable Thread thread;

        @SuppressWarnings("NullAway.Init") // By open().
        private Requests sequence;

        private final CompletionObserver observer = new CompletionObserver(() -> {
            completed = true;
            LockSupport.unpark(thread);
        });

        @Setup
        public void open(Model model) {
            sequence = new Requests(model);
        }

        void await(IdleModel model) {
            thread = Thread.currentThread();
            completed = false;
            model.scheduler().submit(model.request(sequence.next()), observer);
            while (!completed) {
                LockSupport.park(this);
            }
        }
    }

    /** Submits requests of sequences from several threads, each of which has some in flight. */
    @Benchmark
    @BenchmarkMode(Mode.Throughput)
    @Threads(SchedulerBenchmark.SUBMITTERS)
    public void batched(Model target, Window window) {
        window.free.acquireUninterruptibly();
        target.model.scheduler().submit(target.model.request(window.take()), window.observer);
    }

    /** Submits a request of a sequence and waits for its completion. */
    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public void synchronous(Model target, Waiter waiter) {
        waiter.await(target.model);
    }
}
