package dev.nereid.scheduler.instance;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.BestEffort;
import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.time.Watchdog;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts, tracks and ends the threads of the instances of a model. Safe for use by any thread; its lock is held while
 * threads start for a warm-up and lists change, and never during a wait.
 *
 * <p>A thread starts with the first batch that needs it: a model without requests has no threads. For a warm-up all
 * threads start at once. A thread without work ends, where {@link #check} is called, and another one starts with the next
 * batch.
 */
public final class InstanceThreads implements Watchdog.Watched {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceThreads.class);

    /** The time that a thread waits for work before it ends. */
    static final long IDLE_NANOS = TimeUnit.MINUTES.toNanos(1);

    private final FatalErrorHandler fatalErrors;
    private final String prefix;
    private final Consumer<Thread> starter;
    private final Executor unplaced;
    private final ReentrantLock lock = new ReentrantLock();

    /** All workers that may run, or count as serving. Retired workers remove themselves at their end. */
    @GuardedBy("lock")
    private final List<InstanceThread> all = new ArrayList<>();

    /** The workers of {@link #all} with threads that have ended. */
    @GuardedBy("lock")
    private final List<InstanceThread> ended = new ArrayList<>();

    /** Signaled when a worker is removed from {@link #all}, and when waits for retired workers end. */
    private final Condition removed = lock.newCondition();

    @GuardedBy("lock")
    private boolean closing;

    /** {@code true} after the end of all waits for retired workers. */
    @GuardedBy("lock")
    private boolean waitsEnded;

    private volatile List<InstanceThread> serving = List.of();

    private final InstanceThread.Listener listener = new InstanceThread.Listener() {
        @Override
        public void died(Thread thread, Throwable cause) {
            fatalErrors.onThreadEnded(thread.getName()); // first: the handler of a program may fail
            fatalErrors.check(cause);
            BestEffort.run(
                    "end of an instance thread",
                    () -> LOG.atError()
                            .addKeyValue("thread", thread.getName())
                            .setCause(cause)
                            .log("instance thread died (thread '{}')", thread.getName()));
        }

        @Override
        public void ended(InstanceThread thread) {
            remove(thread);
        }
    };

    /**
     * Creates an empty set.
     *
     * @param fatalErrors notified of fatal errors that end a thread
     * @param unplaced runs a task soon, on a thread that is not placed: a new thread inherits the place of its starter
     */
    public InstanceThreads(String prefix, FatalErrorHandler fatalErrors, Executor unplaced) {
        this(prefix, fatalErrors, unplaced, Thread::start);
    }

    /** Creates an empty set. {@code starter} starts a thread, or throws if it cannot. */
    InstanceThreads(String prefix, FatalErrorHandler fatalErrors, Executor unplaced, Consumer<Thread> starter) {
        this.unplaced = unplaced;
        this.prefix = prefix;
        this.fatalErrors = fatalErrors;
        this.starter = starter;
    }

    /**
     * Begins to serve with workers, unless the threads are being closed. Starts a thread for each if there is a
     * warm-up; else each thread starts with the first batch that needs it. In any case {@link #close} or {@link #end}
     * closes the workers.
     *
     * @param warmup the workers' warm-up, notified of threads that are not started now
     */
    public void start(List<InstanceWorker> workers, Warmup warmup) {
        int begun = 0;
        try {
            List<InstanceThread> added = add(workers);
            while (begun < added.size() && begin(added.get(begun), warmup)) {
                begun++;
            }
        } finally { // such as no memory for another thread
            for (int i = begun; i < workers.size(); i++) {
                workers.get(i).leaveQueue();
                warmup.skip();
            }
        }
    }

    private List<InstanceThread> add(List<InstanceWorker> workers) {
        List<InstanceThread> added = workers.stream()
                .map(worker -> new InstanceThread(worker, prefix, starter, unplaced, listener))
                .toList();
        lock.lock();
        try {
            all.addAll(added); // workers that are not started are closed too
        } finally {
            lock.unlock();
        }
        return added;
    }

    /** Begins to serve with a worker; returns {@code false} if the threads are being closed. */
    private boolean begin(InstanceThread thread, Warmup warmup) {
        lock.lock();
        try {
            if (closing) {
                return false;
            }
            if (warmup.hasSamples()) {
                thread.start();
                return true;
            }
        } finally {
            lock.unlock();
        }
        thread.startLate(); // not under the lock: requests that wait for it already may fail
        warmup.pass();
        return true;
    }

    public void serve(Predicate<InstanceWorker> these) {
        lock.lock();
        try {
            serving = all.stream().filter(one -> these.test(one.worker())).toList();
        } finally {
            lock.unlock();
        }
    }

    /** Ends threads that had no work for {@link #IDLE_NANOS}. Called from time to time. */
    @Override
    public void check(long nowNanos) {
        List<InstanceThread> current = serving;
        for (int i = 0; i < current.size(); i++) {
            current.get(i).rest(nowNanos - IDLE_NANOS);
        }
    }

    /** Returns the instances of all serving workers that are alive. */
    public List<Instance> alive() {
        return serving.stream()
                .filter(InstanceThread::isAlive)
                .flatMap(one -> one.worker().instances().stream())
                .toList();
    }

    /** Returns all workers: starting, serving and ending ones. */
    public List<InstanceWorker> workers() {
        lock.lock();
        try {
            return all.stream().map(InstanceThread::worker).toList();
        } finally {
            lock.unlock();
        }
    }

    public List<InstanceWorker> servingWorkers() {
        return serving.stream().map(InstanceThread::worker).toList();
    }

    /** Returns whether every serving worker has an execution that exceeds its limit. Does not allocate. */
    public boolean areAllOverdue() {
        List<InstanceThread> current = serving;
        for (int i = 0; i < current.size(); i++) {
            if (!current.get(i).worker().isOverdue()) {
                return false;
            }
        }
        return !current.isEmpty();
    }

    /** Returns whether the last executions of every serving worker failed for want of memory. Does not allocate. */
    public boolean areAllOutOfMemory() {
        List<InstanceThread> current = serving;
        for (int i = 0; i < current.size(); i++) {
            if (!current.get(i).worker().isOutOfMemory()) {
                return false;
            }
        }
        return !current.isEmpty();
    }

    /** Removes a worker that has ended, or remembers its end if it still counts as serving. */
    private void remove(InstanceThread thread) {
        lock.lock();
        try {
            if (thread.worker().isRetired()) {
                all.remove(thread);
                removed.signalAll();
            } else {
                ended.add(thread);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Waits for the end of retired workers, and removes them. Closes a worker if its thread could not. */
    void end(Predicate<InstanceWorker> these) {
        List<InstanceThread> ending = snapshot(these);
        ending.forEach(InstanceThread::end);
        ending.forEach(one -> one.worker().close());
        lock.lock();
        try {
            all.removeAll(ending);
            ended.removeAll(ending);
            removed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Retires workers; their threads close and remove them when their requests are done. The calling thread closes
     * workers without a thread, unless requests use them.
     */
    public void retire(Predicate<InstanceWorker> these) {
        List<InstanceThread> leaving = snapshot(these);
        leaving.forEach(one -> one.worker().retire());
        leaving.forEach(InstanceThread::endIfUnstarted); // when all are retired, and none is woken in place of another
        lock.lock();
        try {
            List<InstanceThread> gone =
                    ended.stream().filter(one -> one.worker().isRetired()).toList();
            all.removeAll(gone);
            ended.removeAll(gone);
            removed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for at most {@code nanos} until retired workers have ended and their instances are closed; returns whether
     * all have. Does not wait for a worker that is left to the end of its sequences. An interrupt ends the wait, and
     * stays set.
     */
    public boolean awaitRetired(Predicate<InstanceWorker> these, long nanos) {
        long remaining = nanos;
        lock.lock();
        try {
            while (all.stream().map(InstanceThread::worker).anyMatch(these.and(InstanceThreads::isEnding))) {
                if (waitsEnded || remaining <= 0) {
                    return false;
                }
                remaining = removed.awaitNanos(remaining);
            }
            return true;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        } finally {
            lock.unlock();
        }
    }

    private static boolean isEnding(InstanceWorker worker) {
        return !worker.mayTakeBound() && !worker.isLost();
    }

    /** Ends all waits for retired workers, later ones included. */
    public void endWaits() {
        lock.lock();
        try {
            waitsEnded = true;
            removed.signalAll();
        } finally {
            lock.unlock();
        }
    }

    private List<InstanceThread> snapshot(Predicate<InstanceWorker> these) {
        lock.lock();
        try {
            return all.stream().filter(one -> these.test(one.worker())).toList();
        } finally {
            lock.unlock();
        }
    }

    public void abandon() {
        snapshot(worker -> true).forEach(one -> one.worker().executions().abandon());
    }

    /** Starts no more threads, and waits for the end of all. Called when no request is in flight and none may come. */
    public void awaitEnd() {
        lock.lock();
        try {
            closing = true;
        } finally {
            lock.unlock();
        }
        snapshot(worker -> !worker.isLost()).forEach(InstanceThread::end);
    }

    /** Closes instances that were not closed by their threads: not started, or failed. Called after {@link #awaitEnd}. */
    public void close() {
        snapshot(worker -> true).forEach(one -> one.worker().close());
    }
}
