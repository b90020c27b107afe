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
 * threads are started and lists change, and never while one waits.
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

        /** Runs the worker; whatever ends that, the instance is closed once its calls are done with it. */
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
                    over.add(this);
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

    /** All that may run, or count as serving; those that were retired take themselves out at their ends. */
    @GuardedBy("lock")
    private final List<Running> all = new ArrayList<>();

    /** Those of them whose threads have nothing left to do. */
    @GuardedBy("lock")
    private final List<Running> over = new ArrayList<>();

    @GuardedBy("lock")
    private boolean closing;

    private volatile List<Running> serving = List.of();

    /**
     * Begins without threads.
     *
     * @param prefix how the names of the threads begin
     * @param fatalErrors is told if such an error ends a thread
     */
    public InstanceThreads(String prefix, FatalErrorHandler fatalErrors) {
        this(prefix, fatalErrors, Thread::start);
    }

    /**
     * Begins without threads.
     *
     * @param fatalErrors is told if such an error ends a thread, or one cannot be started
     * @param starter starts a thread, or throws if it cannot
     */
    InstanceThreads(String prefix, FatalErrorHandler fatalErrors, Consumer<Thread> starter) {
        this.prefix = prefix;
        this.fatalErrors = fatalErrors;
        this.starter = starter;
    }

    /**
     * Starts a thread for each worker, unless the threads are being closed. In either case the workers are to be closed
     * by {@link #close} or {@link #end}.
     *
     * @param warmup theirs, which is told of threads that could not be started
     */
    public void start(List<InstanceWorker> workers, Warmup warmup) {
        int started = 0;
        lock.lock();
        try {
            List<Running> coming = workers.stream().map(Running::new).toList();
            all.addAll(coming); // also those that are not started are to be closed
            while (started < coming.size() && !closing) {
                starter.accept(coming.get(started).thread);
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

    /** Counts workers as serving. */
    public void serve(Predicate<InstanceWorker> these) {
        lock.lock();
        try {
            serving =
                    all.stream().filter(running -> these.test(running.worker())).toList();
        } finally {
            lock.unlock();
        }
    }

    /** Says whether all workers that serve live and are ready. */
    public boolean areReady() {
        List<Running> current = serving;
        for (int i = 0; i < current.size(); i++) {
            if (!current.get(i).isReady()) {
                return false;
            }
        }
        return true;
    }

    /** Returns all workers: those that serve, those that come, those that go. */
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

    /** Says whether every worker that counts as serving has an overdue execution. Takes no memory. */
    public boolean areAllOverdue() {
        List<Running> current = serving;
        for (int i = 0; i < current.size(); i++) {
            if (!current.get(i).worker().isOverdue()) {
                return false;
            }
        }
        return !current.isEmpty();
    }

    /** Waits for the ends of workers, closes those whose thread could not, and forgets them. */
    void end(Predicate<InstanceWorker> these) {
        List<Running> ending = snapshot(these);
        ending.forEach(Running::join);
        ending.forEach(running -> running.worker().close());
        lock.lock();
        try {
            all.removeAll(ending);
            over.removeAll(ending);
        } finally {
            lock.unlock();
        }
    }

    /** Has some of the workers take no more; their threads close them when their calls are done, and forget them. */
    public void retire(Predicate<InstanceWorker> these) {
        List<Running> leaving = snapshot(these);
        leaving.forEach(running -> running.worker().retire());
        lock.lock();
        try {
            List<Running> ended = over.stream()
                    .filter(running -> running.worker().isRetired())
                    .toList();
            all.removeAll(ended);
            over.removeAll(ended);
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

    /** Gives up what is with the backends. */
    public void abandon() {
        snapshot(worker -> true).forEach(running -> running.worker().abandon());
    }

    /** Starts no more threads, and waits for the ends of all. */
    public void awaitEnd() {
        lock.lock();
        try {
            closing = true;
        } finally {
            lock.unlock();
        }
        snapshot(worker -> !worker.isLost()).forEach(Running::join);
    }

    /**
     * Closes the instances whose thread never started, or could not close them. To be called after {@link #awaitEnd}.
     */
    public void close() {
        snapshot(worker -> true).forEach(running -> running.worker().close());
    }
}
