package dev.nereid.benchmarks.micro;

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

/** Measures the cost of a request through the scheduler of an idle model. Run by {@code SchedulerSection}. */
@OutputTimeUnit(TimeUnit.SECONDS)
public class SchedulerBenchmark {
    /** The number of submitting threads. */
    public static final int SUBMITTERS = 8;

    /** The number of requests in flight of each thread. */
    public static final int WINDOW = 64;

    /** State: a dynamically batched model with one instance thread. */
    @State(Scope.Benchmark)
    public static class Batched {
        @SuppressWarnings("NullAway.Init") // By open().
        IdleModel model;

        @Setup
        public void open() {
            model = new IdleModel(false);
        }

        @TearDown
        public void close() {
            model.close();
        }
    }

    /** State: the same model with direct execution. */
    @State(Scope.Benchmark)
    public static class Direct {
        @SuppressWarnings("NullAway.Init") // By open().
        IdleModel model;

        @Setup
        public void open() {
            model = new IdleModel(true);
        }

        @TearDown
        public void close() {
            model.close();
        }
    }

    /** State: the requests in flight of one thread. */
    @State(Scope.Thread)
    public static class Window {
        private final Semaphore free = new Semaphore(WINDOW);
        private final CompletionObserver observer = new CompletionObserver(free::release);

        @TearDown
        public void close() {
            free.acquireUninterruptibly(WINDOW);
        }
    }

    /** State: a thread that waits for the response to its request. */
    @State(Scope.Thread)
    public static class Waiter {
        private volatile boolean completed;
        private volatile @Nullable Thread thread;

        private final CompletionObserver observer = new CompletionObserver(() -> {
            completed = true;
            LockSupport.unpark(thread);
        });

        void await(ModelScheduler scheduler, IdleModel model) {
            thread = Thread.currentThread();
            completed = false;
            scheduler.submit(model.request(), observer);
            while (!completed) {
                LockSupport.park(this);
            }
        }
    }

    /** State: a second thread, for the cost of two wake-ups. */
    @State(Scope.Thread)
    public static class PingPong {
        private volatile @Nullable Thread pinger;
        private volatile boolean pinged;
        private volatile boolean closed;

        @SuppressWarnings("NullAway.Init") // By open().
        private Thread other;

        /** Starts the other thread. */
        @Setup
        public void open() {
            other = Thread.ofPlatform().name("pong").start(this::pong);
        }

        @TearDown
        public void close() throws InterruptedException {
            closed = true;
            LockSupport.unpark(other);
            other.join();
        }

        private void pong() {
            while (!closed) {
                if (pinged) {
                    pinged = false;
                    LockSupport.unpark(requireNonNull(pinger));
                } else {
                    LockSupport.park(this);
                }
            }
        }

        void ping() {
            pinger = Thread.currentThread();
            pinged = true;
            LockSupport.unpark(other);
            while (pinged) {
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
        target.model.scheduler().submit(target.model.request(), window.observer);
    }

    /** Submits a request and waits for its completion. */
    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public void synchronous(Batched target, Waiter waiter) {
        waiter.await(target.model.scheduler(), target.model);
    }

    /** Wakes another thread and waits to be woken by it. */
    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public void pingPong(PingPong threads) {
        threads.ping();
    }

    /** Submits a request that completes before the submission returns. */
    @Benchmark
    @BenchmarkMode(Mode.SampleTime)
    public void direct(Direct target, Waiter waiter) {
        waiter.await(target.model.scheduler(), target.model);
    }
}
