package dev.nereid.server.executor;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ThreadStack;
import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.scheduler.Supervision;
import dev.nereid.scheduler.instance.Instance;
import java.time.Duration;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs tasks of one load of a model version on threads of the server. Safe for use by any thread.
 *
 * <p>Threads start as tasks need them, up to a limit, and end when they had none for a minute. Further tasks wait, up to a
 * second limit. {@link #close} refuses tasks from then on, and waits for the tasks that it has. Tasks are never interrupted.
 */
public final class ModelExecutor implements Executor {
    static final String PREFIX = "executor/";

    /** The most threads of a model version. */
    static final int MAX_THREADS = 64;

    /** The most tasks of a model version that wait for a thread. */
    static final int MAX_WAITING = 10_000;

    private static final Logger LOG = LoggerFactory.getLogger(ModelExecutor.class);
    private static final Duration DEFAULT_PATIENCE = Duration.ofMinutes(5);
    private static final Duration FAILED_PATIENCE = Duration.ofSeconds(1);

    private final ModelRef model;
    private final String plugin;
    private final FatalErrorHandler fatalErrors;
    private final Duration patience;
    private final Tasks waiting = new Tasks();
    private final Set<Thread> running = ConcurrentHashMap.newKeySet();
    private final AtomicInteger threadNumbers = new AtomicInteger();
    private final ThreadPoolExecutor threads;
    private final LogLevelWatch logLevels;

    private final AtomicInteger tasks = new AtomicInteger();

    /** Runs after the last task; {@code null} before the close, and once it has run. */
    private final AtomicReference<@Nullable Runnable> atEnd = new AtomicReference<>();

    private final AtomicBoolean closed = new AtomicBoolean();

    private volatile Instance.ThreadPlacement placement = Instance.ThreadPlacement.ANYWHERE;

    /**
     * Creates an executor without threads.
     *
     * @param model the name of the model and its version
     * @param plugin the name of the plugin, for the log
     * @param supervision handles fatal errors of tasks; its limit of loads and closes is the time that {@link #close} waits
     */
    public ModelExecutor(ModelRef model, String plugin, Supervision supervision) {
        this.model = model;
        this.plugin = plugin;
        fatalErrors = supervision.fatalErrors();
        logLevels = new LogLevelWatch(supervision.watchdog());
        patience = supervision.loadLimit().isZero() ? DEFAULT_PATIENCE : supervision.loadLimit();
        threads = new ThreadPoolExecutor(
                0, MAX_THREADS, 1, TimeUnit.MINUTES, waiting, this::newThread, (task, _) -> await(task));
    }

    private Thread newThread(Runnable worker) {
        return new Worker(
                () -> {
                    worker.run();
                    passOn();
                },
                PREFIX + model.name() + "/" + model.version() + "/" + threadNumbers.getAndIncrement());
    }

    /**
     * Submits a task again that the ending thread has missed. The task was queued as an idle thread ended, and may wait
     * for the tasks of all others otherwise.
     */
    private void passOn() {
        Runnable missed = threads.isShutdown() ? null : waiting.poll();
        if (missed != null) {
            passOn(missed);
        }
    }

    /** Submits a task again, or runs it if the executor has been closed meanwhile. */
    void passOn(Runnable missed) {
        try {
            threads.execute(missed);
        } catch (RejectedExecutionException _) { // it was accepted before
            missed.run();
        }
    }

    /** Changes where threads run. Each thread moves before its next task. */
    public void place(Instance.ThreadPlacement changed) {
        placement = changed;
    }

    @Override
    public void execute(Runnable task) {
        requireNonNull(task, "task");
        tasks.incrementAndGet();
        boolean accepted = false;
        try {
            threads.execute(() -> run(task));
            accepted = true;
        } finally {
            if (!accepted) { // also where no thread could be started
                ended();
            }
        }
    }

    /** Accepts a task for which no thread can be started. */
    private void await(Runnable task) {
        boolean added = waiting.add(task, threads.isShutdown());
        if (!added || (threads.isShutdown() && threads.remove(task))) { // the last thread may have ended meanwhile
            throw new RejectedExecutionException("model '" + model.name() + "', version " + model.version()
                    + ": its executor "
                    + (threads.isShutdown()
                            ? "is closed (expected: no task after the close of the model)"
                            : "has " + MAX_WAITING + " tasks that wait for one of " + MAX_THREADS
                                    + " threads (expected: fewer; wait for some before adding more)"));
        }
    }

    private void run(Runnable task) {
        Thread thread = Thread.currentThread();
        running.add(thread);
        try {
            if (thread instanceof Worker worker) {
                worker.place(placement);
            }
            task.run();
        } catch (Throwable e) { // the thread goes on
            fatalErrors.check(e);
            LOG.atError()
                    .addKeyValue("model", model.name())
                    .addKeyValue("version", model.version())
                    .addKeyValue("plugin", plugin)
                    .setCause(e)
                    .log(
                            "task of the executor of model '{}', version {}, plugin '{}' failed: {}",
                            model.name(),
                            model.version(),
                            plugin,
                            PluginBoundary.describe(e));
        } finally {
            running.remove(thread);
            ended();
        }
    }

    private void ended() {
        if (tasks.decrementAndGet() == 0) {
            end();
        }
    }

    private void end() {
        Runnable action = atEnd.getAndSet(null);
        if (action != null) {
            action.run();
        }
    }

    /** Returns the watch that reports changes of the log level to the plugin. It ends with the executor. */
    public LogLevelWatch logLevels() {
        return logLevels;
    }

    /** Returns the number of threads at this moment, with idle ones; at most 64. */
    public int threads() {
        return threads.getPoolSize();
    }

    /** Returns the number of tasks that wait for a thread; at most 10000. */
    public int waiting() {
        return waiting.size();
    }

    /** Returns whether it ever had a task, and so started a thread. */
    public boolean isUsed() {
        return threadNumbers.get() > 0;
    }

    /**
     * Refuses further tasks, and waits for the tasks that it has, up to the limit of a close. Tasks that have not ended then are
     * logged with their stacks, and waiting ones are dropped. Later calls do nothing.
     *
     * @param then releases the resources that tasks may use; called once, after the last of them: by the calling
     *     thread, or by the thread of a task that ends later
     */
    public void close(Runnable then) {
        close(patience, then);
    }

    /**
     * Closes the executor of a load that has failed, as {@link #close}, but waits a second at most: nothing of the plugin can
     * end its tasks any more.
     *
     * @param then as there
     */
    public void closeFailed(Runnable then) {
        close(FAILED_PATIENCE, then);
    }

    private void close(Duration longest, Runnable then) {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        logLevels.close();
        threads.shutdown();
        boolean interrupted = false;
        boolean terminated = false;
        try {
            terminated = threads.awaitTermination(longest.toNanos(), TimeUnit.NANOSECONDS);
        } catch (InterruptedException e) {
            interrupted = true;
        }
        if (!terminated) {
            reportUnfinished();
            drop();
        }
        atEnd.set(then);
        if (tasks.get() == 0) {
            end();
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    private void drop() {
        int dropped = 0;
        while (waiting.poll() != null) {
            dropped++;
        }
        if (dropped > 0) {
            LOG.atWarn()
                    .addKeyValue("model", model.name())
                    .addKeyValue("version", model.version())
                    .addKeyValue("plugin", plugin)
                    .log(
                            "{} tasks of the executor of model '{}', version {}, plugin '{}' never ran: they waited when"
                                    + " the model was closed",
                            dropped,
                            model.name(),
                            model.version(),
                            plugin);
            if (tasks.addAndGet(-dropped) == 0) {
                end();
            }
        }
    }

    private void reportUnfinished() {
        for (Thread thread : running) {
            LOG.atWarn()
                    .addKeyValue("model", model.name())
                    .addKeyValue("version", model.version())
                    .addKeyValue("plugin", plugin)
                    .addKeyValue("thread", thread.getName())
                    .setCause(ThreadStack.of(thread, thread.getStackTrace()))
                    .log(
                            "task of the executor of model '{}', version {}, plugin '{}' has not ended after the close of"
                                    + " the model; the plugin stays loaded until it ends",
                            model.name(),
                            model.version(),
                            plugin);
        }
    }

    /** A thread that inherits nothing, such as a plugin's class loader, from its creator. */
    private static final class Worker extends Thread {
        private Instance.ThreadPlacement placed = Instance.ThreadPlacement.ANYWHERE;

        Worker(Runnable worker, String name) {
            super(null, worker, name, 0, false);
            setDaemon(true);
        }

        void place(Instance.ThreadPlacement placement) {
            if (!placement.equals(placed)) {
                placed = placement;
                placement.place();
            }
        }
    }

    /** The tasks that wait. The pool offers one before it starts a thread, and gets it back unless a thread is idle. */
    private final class Tasks extends LinkedBlockingQueue<Runnable> {
        private static final long serialVersionUID = 1;

        Tasks() {
            super(MAX_WAITING);
        }

        @Override
        public boolean offer(Runnable task) {
            return tasks.get() <= threads.getPoolSize() && super.offer(task);
        }

        /** Adds a task for which no thread is idle. */
        boolean add(Runnable task, boolean closed) {
            return !closed && super.offer(task);
        }
    }
}
