package dev.nereid.scheduler.instance;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.FatalErrorHandler;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Starts, tracks and ends the threads of the instances of a model. Safe for use by any thread; its lock is held while
 * threads start and lists change, and never during a wait.
 */
public final class InstanceThreads {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceThreads.class);

    private final FatalErrorHandler fatalErrors;

    /** A worker and the thread that runs it. */
    private final class Running implements Runnable {
        private final InstanceWorker worker;
        private final Thread thread;

        Running(InstanceWorker worker) {
            this.worker = worker;
            this.thread = Thread.ofPlatform()
                    .name(prefix + worker.name())
                    .daemon(true)
                    .uncaughtExceptionHandler(InstanceThreads.this::logDeath)
                    .unstarted(this);
        }

        /** Runs the worker; however that ends, the instance is closed once no request uses it. */
        @Override
        public void run() {
            try {
                worker.run();
            } catch (RuntimeException | Error e) {
                logDeath(thread, e);
            } finally {
                worker.close();
                leave();
            }
        }

        private void leave() {
            lock.lock();
            try {
                if (worker.isRetired()) {
                    all.remove(this);
                } else {
                    ended.add(this);
                }
            } finally {
                lock.unlock();
            }
        }

        InstanceWorker worker() {
            return worker;
        }

        boolean isReady() {
            return thread.isAlive() && !worker.isGone() && worker.isReady();
        }

        /** Waits for the end of the thread. */
        void join() {
            boolean interrupted = false;
            while (thread.isAlive()) {
                try {
                    thread.join();
                } catch (InterruptedException e) {
                    interrupted = true;
                }
            }
            if (interrupted) {
                Thread.currentThread().interrupt();
            }
        }
    }

    private final String prefix;
    private final Consumer<Thread> starter;
    private final ReentrantLock lock = new ReentrantLock();

    /** All workers that may run, or count as serving. Retired workers remove themselves at their end. */
    @GuardedBy("lock")
    private final List<Running> all = new ArrayList<>();

    /** The workers of {@link #all} whose threads have ended. */
    @GuardedBy("lock")
    private final List<Running> ended = new ArrayList<>();

    @GuardedBy("lock")
    private boolean closing;

    private volatile List<Running> serving = List.of();

    /**
     * Creates an empty set.
     *
     * @param prefix the prefix of thread names
     * @param fatalErrors notified of fatal errors that end a thread
     */
    public InstanceThreads(String prefix, FatalErrorHandler fatalErrors) {
        this(prefix, fatalErrors, Thread::start);
    }

    /**
     * Creates an empty set.
     *
     * @param fatalErrors notified of fatal errors that end a thread, or prevent its start
     * @param starter starts a thread, or throws if it cannot
     */
    InstanceThreads(String prefix, FatalErrorHandler fatalErrors, Consumer<Thread> starter) {
        this.prefix = prefix;
        this.fatalErrors = fatalErrors;
        this.starter = starter;
    }

    /**
     * Starts a thread for each worker, unless the threads are being closed. In either case {@link #close} or
     * {@link #end} closes the workers.
     *
     * @param warmup the workers' warm-up, notified of threads that could not be started
     */
    public void start(List<InstanceWorker> workers, Warmup warmup) {
        int started = 0;
        lock.lock();
        try {
            List<Running> added = workers.stream().map(Running::new).toList();
            all.addAll(added); // workers that are not started are closed too
            while (started < added.size() && !closing) {
                starter.accept(added.get(started).thread);
                started++;
            }
        } finally { // such as no memory for another thread
            lock.unlock();
            for (int i = started; i < workers.size(); i++) {
                workers.get(i).leaveQueue();
                warmup.skip();
            }
        }
    }

    private void logDeath(Thread thread, Throwable cause) {
        fatalErrors.check(cause);
        LOG.atError().addKeyValue("thread", thread.getName()).setCause(cause).log("instance thread died");
    }

    /** Sets the workers that count as serving. */
    public void serve(Predicate<InstanceWorker> these) {
        lock.lock();
        try {
            serving =
                    all.stream().filter(running -> these.test(running.worker())).toList();
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether all serving workers are alive and ready. */
    public boolean areReady() {
        List<Running> current = serving;
        for (int i = 0; i < current.size(); i++) {
            if (!current.get(i).isReady()) {
                return false;
            }
        }
        return true;
    }

    /** Returns all workers: starting, serving and ending ones. */
    public List<InstanceWorker> workers() {
        lock.lock();
        try {
            return all.stream().map(Running::worker).toList();
        } finally {
            lock.unlock();
        }
    }

    /** Returns the workers that count as serving. */
    public List<InstanceWorker> servingWorkers() {
        return serving.stream().map(Running::worker).toList();
    }

    /** Returns whether every serving worker has an execution that exceeds its limit. Does not allocate. */
    public boolean areAllOverdue() {
        List<Running> current = serving;
        for (int i = 0; i < current.size(); i++) {
            if (!current.get(i).worker().isOverdue()) {
                return false;
            }
        }
        return !current.isEmpty();
    }

    /** Waits for the end of workers, closes those whose thread could not, and removes them. */
    void end(Predicate<InstanceWorker> these) {
        List<Running> ending = snapshot(these);
        ending.forEach(Running::join);
        ending.forEach(running -> running.worker().close());
        lock.lock();
        try {
            all.removeAll(ending);
            ended.removeAll(ending);
        } finally {
            lock.unlock();
        }
    }

    /** Retires workers; their threads close and remove them when their requests are done. */
    public void retire(Predicate<InstanceWorker> these) {
        List<Running> leaving = snapshot(these);
        leaving.forEach(running -> running.worker().retire());
        lock.lock();
        try {
            List<Running> gone = ended.stream()
                    .filter(running -> running.worker().isRetired())
                    .toList();
            all.removeAll(gone);
            ended.removeAll(gone);
        } finally {
            lock.unlock();
        }
    }

    private List<Running> snapshot(Predicate<InstanceWorker> these) {
        lock.lock();
        try {
            return all.stream().filter(running -> these.test(running.worker())).toList();
        } finally {
            lock.unlock();
        }
    }

    /** Abandons the requests that are in execution. */
    public void abandon() {
        snapshot(worker -> true).forEach(running -> running.worker().abandon());
    }

    /** Starts no more threads, and waits for the end of all. */
    public void awaitEnd() {
        lock.lock();
        try {
            closing = true;
        } finally {
            lock.unlock();
        }
        snapshot(worker -> !worker.isLost()).forEach(Running::join);
    }

    /** Closes the instances whose thread never started, or could not close them. Called after {@link #awaitEnd}. */
    public void close() {
        snapshot(worker -> true).forEach(running -> running.worker().close());
    }
}
