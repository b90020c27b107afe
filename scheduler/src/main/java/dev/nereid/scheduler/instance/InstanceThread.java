package dev.nereid.scheduler.instance;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.concurrent.Executor;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A worker and the thread that runs it. Safe for use by any thread.
 *
 * <p>The thread starts with the first batch that needs it, or at once for a warm-up. It may end while there is no work,
 * and another one starts with the next batch. A worker without a thread is ended by the thread that closes or retires it.
 */
final class InstanceThread {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceThread.class);

    /** Observes the end of an instance thread. */
    interface Listener {
        /** Handles an error that ends the thread. */
        void died(Thread thread, Throwable cause);

        /** Called last: the worker has left the queue, and its instances are closed. */
        void ended(InstanceThread ended);
    }

    private final InstanceWorker worker;
    private final String name;
    private final Listener listener;
    private final Executor unplaced;
    private final LazyThread thread;

    /** {@code true} if a failed start was logged since the last successful one. */
    private final AtomicBoolean reported = new AtomicBoolean();

    /**
     * Creates a worker's thread, which is not started.
     *
     * @param prefix the prefix of the thread's name
     * @param starter starts a thread, or throws if it cannot
     * @param unplaced runs a task soon, on a thread that is not placed
     */
    InstanceThread(
            InstanceWorker worker, String prefix, Consumer<Thread> starter, Executor unplaced, Listener listener) {
        this.worker = worker;
        this.listener = listener;
        this.unplaced = unplaced;
        this.name = prefix + worker.name();
        this.thread = new LazyThread(() -> newThread(name), starter);
        worker.restartBy(this::startSoon);
    }

    /** Creates a thread that inherits nothing of the client that starts it by a request. */
    private Thread newThread(String name) {
        Thread created = worker.isPlaced()
                ? new PlacedThread(this::run, name)
                : Thread.ofPlatform()
                        .name(name)
                        .inheritInheritableThreadLocals(false)
                        .unstarted(this::run);
        created.setDaemon(true);
        created.setUncaughtExceptionHandler(listener::died);
        return created;
    }

    InstanceWorker worker() {
        return worker;
    }

    /** Starts the thread now; throws the failure of the starter. */
    void start() {
        thread.start();
    }

    /** Registers the instance so that the thread starts with the first batch that needs it. */
    void startLate() {
        worker.addUnstarted(this::startSoon);
    }

    private void startSoon() {
        if (Thread.currentThread() instanceof PlacedThread) {
            orFail(() -> unplaced.execute(() -> orFail(this::startNow)));
        } else {
            orFail(this::startNow);
        }
    }

    private void startNow() {
        if (thread.start()) {
            reported.set(false);
        } else { // cancelled meanwhile: the instance ends
            worker.startFailed(request -> SchedulerErrors.noInstance(request.checked()));
        }
    }

    /**
     * Starts the thread for a batch. If that fails, such as because the system refuses a thread, the instance waits for
     * the next batch, and the requests that no other instance can execute fail: the calling thread belongs to a client's
     * connection, or to another instance.
     */
    private void orFail(Runnable start) {
        try {
            start.run();
        } catch (Throwable e) { // of the starter or the executor
            report(e);
            worker.startFailed(request -> SchedulerErrors.noThread(request.checked(), e));
        }
    }

    /** Logs the first of several failures: there is one for each request. */
    private void report(Throwable cause) {
        if (reported.compareAndSet(false, true)) {
            LOG.atError()
                    .addKeyValue("instance", worker.name())
                    .setCause(cause)
                    .log(
                            "thread of instance could not be started: its requests are refused until it can (thread '{}')",
                            name);
        }
    }

    /**
     * Runs the worker until it has ended, or the thread may end. However the worker ends, the instance is closed once no
     * request uses it.
     */
    private void run() {
        boolean over = true;
        try {
            over = worker.runWhileUsed();
            while (!over && !thread.leave()) { // it is needed again
                over = worker.runWhileUsed();
            }
        } catch (RuntimeException | Error e) { // of the worker, which is not to end by one
            over = true;
            listener.died(Thread.currentThread(), e);
        } finally {
            if (over) {
                worker.close();
                listener.ended(this);
            }
        }
    }

    /** Ends the thread if it waits for work since a time or longer. Does not wait. */
    void rest(long sinceNanos) {
        if (thread.thread() != null) {
            worker.rest(sinceNanos);
        }
    }

    /** Returns whether the worker executes batches, or will with the first one. */
    boolean isAlive() {
        Thread started = thread.thread();
        return (started == null || started.isAlive()) && !worker.isGone();
    }

    /**
     * Ends a retired worker that has no thread; its thread ends another one. Does not wait for requests that use the
     * instance, such as deferred executions that began on a submitting thread.
     */
    void endIfUnstarted() {
        if (!worker.mayTakeBound() && thread.cancel()) { // otherwise its thread ends it, which the source has started
            worker.leaveUnstarted();
            if (worker.isUnused()) {
                closeUnstarted();
            } else {
                Thread.ofVirtual().name("retire/" + worker.name()).start(this::closeUnstarted);
            }
        }
    }

    private void closeUnstarted() {
        worker.close();
        listener.ended(this);
    }

    /**
     * Waits for the end of the thread. Without one, the worker leaves the queue; {@link InstanceWorker#close} is left to
     * the caller. Called when the worker is retired, or the queue stopped and no request is in flight.
     */
    void end() {
        if (thread.cancel()) {
            worker.leaveUnstarted();
        } else {
            join(thread.thread());
        }
    }

    private static void join(@Nullable Thread started) {
        boolean interrupted = false;
        while (started != null && started.isAlive()) {
            try {
                started.join();
            } catch (InterruptedException e) {
                interrupted = true;
            }
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * The thread of an instance that is placed on some processors. A thread that it starts would inherit its place from
     * the operating system.
     */
    private static final class PlacedThread extends Thread {
        /** Creates a thread that is not started. The task places it first. */
        PlacedThread(Runnable task, String name) {
            super(null, task, name, 0, false);
        }
    }

    /**
     * Starts a thread on demand, unless cancelled, and again after its end. Safe for use by any thread.
     *
     * <p>It is new until its thread is started, or its start cancelled: one atomic step under its lock, which is held while
     * the thread starts. So {@link #cancel} returns only when it is certain whether there is a thread. After a failed
     * start, and after {@link #leave}, it is new again. The thread may end while it is not needed. There is one thread at
     * most.
     */
    static final class LazyThread {
        private final Supplier<Thread> factory;
        private final Consumer<Thread> starter;
        private final ReentrantLock lock = new ReentrantLock();

        @GuardedBy("lock")
        private boolean cancelled;

        /** {@code true} if a start was requested while the thread existed and was about to leave. */
        @GuardedBy("lock")
        private boolean again;

        /** The thread while it exists; written under the lock, read by any thread. */
        private volatile @Nullable Thread thread;

        /**
         * Creates a new one without a thread.
         *
         * @param factory creates a thread for each attempt to start it
         * @param starter starts it, or throws if it cannot
         */
        LazyThread(Supplier<Thread> factory, Consumer<Thread> starter) {
            this.factory = factory;
            this.starter = starter;
        }

        /**
         * Starts the thread, or keeps one that is about to {@link #leave}. Throws the failure of the starter; a later call
         * tries again.
         *
         * @return {@code false} if there is and will be no thread, since the start was cancelled
         */
        boolean start() {
            lock.lock();
            try {
                if (thread != null) {
                    again = true;
                    return true;
                }
                if (cancelled) {
                    return false;
                }
                Thread created = factory.get();
                starter.accept(created);
                thread = created;
                return true;
            } finally {
                lock.unlock();
            }
        }

        /**
         * Permits the calling thread, which is the started one, to end. A later start creates another thread.
         *
         * @return {@code false} if the thread is needed: a start was requested meanwhile, or the start was cancelled, so
         *     that the caller of {@link #cancel} relies on it
         */
        boolean leave() {
            lock.lock();
            try {
                boolean stays = again || cancelled;
                again = false;
                if (!stays) {
                    thread = null;
                }
                return !stays;
            } finally {
                lock.unlock();
            }
        }

        /**
         * Cancels the start of a thread from now on. An existing thread does not {@link #leave} any more.
         *
         * @return whether there is no thread, and never will be
         */
        boolean cancel() {
            lock.lock();
            try {
                cancelled = true;
                return thread == null;
            } finally {
                lock.unlock();
            }
        }

        /** Returns the thread, which may have ended; {@code null} if there is none. */
        @Nullable
        Thread thread() {
            return thread;
        }
    }
}
