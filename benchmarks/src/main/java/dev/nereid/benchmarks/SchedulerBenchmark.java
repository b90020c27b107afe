package dev.nereid.benchmarks;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.ModelScheduler;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;

/**
 * What a request costs from its submission to its answer, through the scheduler of a model whose backend does nothing.
 * Run by {@link SchedulerSection}.
 */
@OutputTimeUnit(TimeUnit.SECONDS)
public class SchedulerBenchmark {
    /** So many threads submit at once. */
    static final int SUBMITTERS = 8;

    /** So many requests each of them has under way. */
    static final int WINDOW = 64;

    /** A model whose requests are batched dynamically, on one thread. */
    @State(Scope.Benchmark)
    public static class Batched {
        @SuppressWarnings("NullAway.Init") // By open().
        IdleModel model;

        /** Starts the scheduler. */
        @Setup
        public void open() {
            model = new IdleModel(false);
        }

        /** Stops it. */
        @TearDown
        public void close() {
            model.close();
        }
    }

    /** The same, executed by the threads that submit. */
    @State(Scope.Benchmark)
    public static class Direct {
        @SuppressWarnings("NullAway.Init") // By open().
        IdleModel model;

        /** Starts the scheduler. */
        @Setup
        public void open() {
            model = new IdleModel(true);
        }

        /** Stops it. */
        @TearDown
        public void close() {
            model.close();
        }
    }

    /** The requests that a thread has under way. */
    @State(Scope.Thread)
    public static class Window {
        private final Semaphore free = new Semaphore(WINDOW);
        private final Told observer = new Told(free::release);

        /** Waits for all of them. */
        @TearDown
        public void close() {
            free.acquireUninterruptibly(WINDOW);
        }
    }

    /** A thread that waits for the answer to its request. */
    @State(Scope.Thread)
    public static class Waiter {
        private volatile boolean answered;
        private volatile @Nullable Thread thread;

        private final Told observer = new Told(() -> {
            answered = true;
            LockSupport.unpark(thread);
        });

        void await(ModelScheduler scheduler, IdleModel model) {
            thread = Thread.currentThread();
            answered = false;
            scheduler.submit(model.call(), observer);
            while (!answered) {
                LockSupport.park(this);
            }
        }
    }

    /** Another thread that answers at once: what two wake-ups cost. */
    @State(Scope.Thread)
    public static class PingPong {
        private volatile @Nullable Thread asking;
        private volatile boolean asked;
        private volatile boolean closed;

        @SuppressWarnings("NullAway.Init") // By open().
        private Thread other;

        /** Starts the other thread. */
        @Setup
        public void open() {
            other = Thread.ofPlatform().name("pong").start(this::answer);
        }

        /** Ends it. */
        @TearDown
        public void close() throws InterruptedException {
            closed = true;
            LockSupport.unpark(other);
            other.join();
        }

        private void answer() {
            while (!closed) {
                if (asked) {
                    asked = false;
                    LockSupport.unpark(requireNonNull(asking));
                } else {
                    LockSupport.park(this);
                }
            }
        }

        void ask() {
            asking = Thread.currentThread();
            asked = true;
            LockSupport.unpark(other);
            while (asked) {
                LockSupport.park(this);
            }
        }
    }

    /** Submits requests from several threads, each of which has some under way. */
    @Benchmark
    @BenchmarkMode(Mode.Throughput)
    @Threads(SUBMITTERS)
    public void batched(Batched target, Window window) {
        window.free.acquireUninterruptibly();
        target.model.scheduler().submit(target.model.call(), window.observer);
    }

    /** Submits a request and waits for its answer. */
    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public void synchronous(Batched target, Waiter waiter) {
        waiter.await(target.model.scheduler(), target.model);
    }

    /** Wakes another thread and waits to be woken by it. */
    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public void pingPong(PingPong threads) {
        threads.ask();
    }

    /** Submits a request that is answered before the submission returns. */
    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public void direct(Direct target, Waiter waiter) {
        waiter.await(target.model.scheduler(), target.model);
    }
}
