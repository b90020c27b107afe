package dev.nereid.backend.python;

import static java.lang.System.Logger.Level.INFO;
import static java.lang.System.Logger.Level.WARNING;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.python.process.Worker;
import dev.nereid.backend.python.process.WorkerEnd;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * An instance of a model: one process at a time. A process that ends is followed by another one after a pause, which doubles
 * until one has served for a minute.
 *
 * <p>While the process is restarted for the first time, requests wait. When that was in vain, the instance takes no work while
 * another one of the model does; when none does, its requests fail at once.
 */
final class PythonInstance implements ModelInstance {
    private enum State {
        /** The first process is being started. */
        STARTING,
        /** Batches are executed. */
        SERVING,
        /** The process has closed its connection, and its end is awaited. */
        ENDING,
        /** The process has ended, and the first restart is not over. */
        RESTARTING,
        /** A restart was in vain, or the new process has ended soon. */
        FAILING,
        CLOSED
    }

    private final PythonModel model;
    private final InstanceContext context;
    private final System.Logger logger;
    private final CompletableFuture<Void> started = new CompletableFuture<>();
    private final ReentrantLock lock = new ReentrantLock();

    /** Held while the server hears of a state, and for nothing else. */
    private final ReentrantLock reporting = new ReentrantLock();

    @GuardedBy("lock")
    private State state = State.STARTING;

    @GuardedBy("lock")
    private @Nullable PythonProcess process;

    @GuardedBy("lock")
    private final Restarts restarts;

    @GuardedBy("lock")
    private @Nullable DelayedTask restart;

    @GuardedBy("lock")
    private String reason = "";

    @GuardedBy("lock")
    private boolean othersServe;

    /** Completes with the next change of the state. */
    @GuardedBy("lock")
    private CompletableFuture<Void> changed = new CompletableFuture<>();

    private volatile @Nullable PythonProcess serving;

    PythonInstance(PythonModel model, InstanceContext context) {
        this.model = model;
        this.context = context;
        this.logger = model.context().logger();
        this.restarts = new Restarts(model.program().settings()::restartDelay, model.nanoTime());
    }

    /** Starts the instance, in the process that has completed the configuration if there is one. */
    void start(Optional<PythonProcess> opened) {
        if (context.device().kind() == Device.Kind.GPU) {
            logger.log(
                    INFO,
                    context.name() + ": inputs and outputs are in host memory; the model moves them to device "
                            + context.device().id());
        }
        PythonProcess first = opened.orElseGet(this::newProcess);
        lock.lock();
        try {
            process = first;
        } finally {
            lock.unlock();
        }
        CompletableFuture<Void> _ = initialize(first).whenComplete((done, failure) -> {
            if (failure == null) {
                try {
                    serve(first);
                } finally {
                    started.complete(null);
                }
            } else {
                started.completeExceptionally(cause(failure));
            }
        });
    }

    private PythonProcess newProcess() {
        return PythonProcess.start(model.context(), model.program(), context.name(), context.device());
    }

    private CompletableFuture<Void> initialize(PythonProcess created) {
        CompletableFuture<Void> ready = created.opened()
                .thenCompose(completes -> created.initialize(
                        model.context(),
                        ModelArguments.of(
                                model.context(), context, model.program().parameters()),
                        model.tensors()));
        model.program()
                .watch()
                .watch(
                        ready,
                        context.name(),
                        "import and initialize",
                        model.program().parameters().startTimeout(),
                        created::kill,
                        created::printStacks);
        return ready;
    }

    private DelayedTask later(Duration delay, Runnable task) {
        return DelayedTask.start(delay, model.context().executor(), task);
    }

    @GuardedBy("lock")
    private void setState(State next) {
        state = next;
        CompletableFuture<Void> change = changed;
        changed = new CompletableFuture<>();
        change.complete(null);
    }

    private void serve(PythonProcess ready) {
        boolean change;
        lock.lock();
        try {
            change = state != State.CLOSED;
            if (change) {
                restarts.serving();
                serving = ready;
                setState(State.SERVING);
            }
        } finally {
            lock.unlock();
        }
        if (change) {
            CompletableFuture<Void> _ = ready.disconnected().thenRun(() -> onDisconnect(ready));
            CompletableFuture<Void> _ = ready.stopped().thenAccept(end -> onEnd(ready, end));
            updateAvailability();
            model.onStateChange();
        }
    }

    /** Takes no more work, so that requests go to other instances while the end of the process is awaited. */
    private void onDisconnect(PythonProcess ending) {
        lock.lock();
        try {
            if (process != ending || state != State.SERVING) {
                return;
            }
            reason = Worker.unhealthy(context.name());
            setState(State.ENDING);
        } finally {
            lock.unlock();
        }
        updateAvailability();
    }

    private void onEnd(PythonProcess ended, WorkerEnd end) {
        lock.lock();
        try {
            if (process != ended || state == State.CLOSED) {
                return;
            }
            serving = null;
            restarts.ended();
        } finally {
            lock.unlock();
        }
        restartLater(Worker.unhealthy(context.name()) + ' ' + end.describe());
    }

    private void restartLater(String why) {
        Duration delay;
        lock.lock();
        try {
            if (state == State.CLOSED) {
                return;
            }
            reason = why;
            State next = restarts.isFirst() ? State.RESTARTING : State.FAILING;
            delay = restarts.next();
            restart = later(delay, this::restart);
            setState(next);
        } finally {
            lock.unlock();
        }
        logger.log(
                WARNING,
                (model.isServedBeside(this) ? "" : notReady()) + why + " It is started again in " + delay.toMillis()
                        + " ms.");
        updateAvailability();
        model.onStateChange();
    }

    /** Returns the begin of a line that the reference server writes when a process has ended. */
    private String notReady() {
        ModelSettings settings = model.context().settings();
        return "Model '" + settings.name() + "' version " + settings.version() + " is not ready: ";
    }

    private void restart() {
        PythonProcess next;
        CompletableFuture<Void> ready;
        try {
            next = replaceProcess();
            if (next == null) {
                return;
            }
            model.restarts(context.name()).increment(1);
            ready = initialize(next);
        } catch (RuntimeException | Error e) { // such as no threads: the next restart may have them
            logger.log(WARNING, "restart of " + context.name(), e);
            restartLater(Worker.unhealthy(context.name()) + " The process could not be started: " + e);
            return;
        }
        CompletableFuture<Void> _ = ready.whenComplete((done, failure) -> {
            if (failure == null) {
                serve(next);
            } else {
                next.kill("");
                String why = String.valueOf(cause(failure).getMessage());
                CompletableFuture<Void> _ = next.ended().thenAccept(end -> restartLater(why));
            }
        });
    }

    /** Starts the next process, or returns {@code null} if the instance is closed. */
    private @Nullable PythonProcess replaceProcess() {
        lock.lock();
        try {
            if (state == State.CLOSED) {
                return null;
            }
            PythonProcess before = process;
            if (before != null) {
                before.kill(""); // it has ended, but for one that could not be initialized
            }
            PythonProcess next = newProcess();
            process = next;
            return next;
        } finally {
            lock.unlock();
        }
    }

    private static Throwable cause(Throwable failure) {
        return failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
    }

    boolean isServing() {
        return serving != null;
    }

    /** Returns whether requests may wait for this instance. */
    boolean isServingOrRestarting() {
        lock.lock();
        try {
            return switch (state) {
                case STARTING, SERVING, ENDING, RESTARTING -> true;
                case FAILING, CLOSED -> false;
            };
        } finally {
            lock.unlock();
        }
    }

    /** Says whether requests have another instance that they may wait for. */
    void setOthersServe(boolean serve) {
        lock.lock();
        try {
            othersServe = serve;
        } finally {
            lock.unlock();
        }
    }

    /** Says to the server what the state means for it: one thread at a time, so that the last state is the last word. */
    void updateAvailability() {
        reporting.lock();
        try {
            report(availability());
        } finally {
            reporting.unlock();
        }
    }

    private Availability availability() {
        lock.lock();
        try {
            return new Availability(state, othersServe, reason);
        } finally {
            lock.unlock();
        }
    }

    private void report(Availability now) {
        switch (now.state()) {
            case STARTING, CLOSED -> {
                // Nothing has changed for the server.
            }
            case SERVING -> context.available();
            case ENDING, RESTARTING -> context.unavailable(now.reason());
            case FAILING -> {
                if (now.othersServe()) {
                    context.unavailable(now.reason());
                } else {
                    context.failing(now.reason());
                }
            }
        }
    }

    private record Availability(State state, boolean othersServe, String reason) {}

    @Override
    public CompletionStage<Void> started() {
        return started;
    }

    @Override
    public void execute(Batch batch) {
        PythonProcess ready = serving;
        if (ready != null && ready.isAlive()) {
            ready.execute(batch, limit(ready));
            return;
        }
        // The batch was taken before the process ended.
        CompletableFuture<Void> next = nextChange();
        executeAfter(next, batch, batch.defer());
    }

    /** Executes a deferred batch when the state has changed, unless all its clients have gone before. */
    private void executeAfter(CompletableFuture<Void> change, Batch batch, DeferredExecution handle) {
        CompletableFuture<Void> cancelled = new CompletableFuture<>();
        AtomicInteger clients = new AtomicInteger(batch.requests().size());
        List<CancelHook> hooks = new ArrayList<>();
        for (InferenceRequest request : batch.requests()) {
            hooks.add(request.onCancel(() -> {
                if (clients.decrementAndGet() == 0) {
                    cancelled.complete(null);
                }
            }));
        }
        CompletableFuture<Void> _ = CompletableFuture.anyOf(change, cancelled)
                .thenRunAsync(
                        () -> {
                            hooks.forEach(CancelHook::close);
                            executeLater(batch, handle);
                        },
                        model.context().executor())
                .exceptionally(failure -> {
                    handle.fail(cause(failure) instanceof BackendException error ? error : unavailable());
                    return null;
                });
    }

    /** Executes a deferred batch that has waited for a restart. */
    private void executeLater(Batch batch, DeferredExecution handle) {
        PythonProcess ready = serving;
        if (batch.requests().stream().allMatch(InferenceRequest::isCancelled)) {
            handle.fail(new BackendException(
                    ErrorCode.CANCELLED, "cancelled while the process of '" + context.name() + "' was restarted"));
        } else if (ready == null || !ready.isAlive()) {
            executeAfter(nextChange(), batch, handle);
        } else {
            ready.execute(batch, handle, limit(ready));
        }
    }

    /** Limits the time of an execution, and returns what ends that time. */
    private Runnable limit(PythonProcess ready) {
        Optional<Duration> limit = model.program().parameters().executionTimeout();
        return limit.isEmpty()
                ? () -> {}
                : ExecutionLimit.start(ready, limit.get(), model.context().executor())::close;
    }

    /** Returns the end of the restart in progress, or fails if there is nothing to wait for. */
    private CompletableFuture<Void> nextChange() {
        lock.lock();
        try {
            if (state == State.FAILING || state == State.CLOSED) {
                throw unavailable();
            }
            return changed;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void executionOverdue() {
        PythonProcess current = serving;
        if (current != null) {
            current.printStacks();
        }
    }

    @Override
    public CompletionStage<Void> checkReady() {
        PythonProcess ready = serving;
        return ready == null || !ready.isAlive() ? CompletableFuture.failedStage(unavailable()) : ready.checkReady();
    }

    private BackendException unavailable() {
        lock.lock();
        try {
            return new BackendException(
                    ErrorCode.UNAVAILABLE, reason.isEmpty() ? Worker.unhealthy(context.name()) : reason);
        } finally {
            lock.unlock();
        }
    }

    /** Returns the memory of the instance in bytes: its process, and the memory that process and server share. */
    long memoryUsage() {
        PythonProcess current = serving;
        return current == null ? 0 : current.memoryUsage();
    }

    @Override
    public void close() {
        PythonProcess last;
        boolean isInitialized;
        lock.lock();
        try {
            isInitialized = serving != null;
            serving = null;
            last = process;
            if (restart != null) {
                restart.cancel();
            }
            setState(State.CLOSED);
        } finally {
            lock.unlock();
        }
        if (last != null && isInitialized) {
            WorkerEnd end =
                    last.finish(model.program().settings().stubTimeout()).join();
            if (end.status() != 0) {
                logger.log(WARNING, context.name() + " was not finalized in order. " + end.describe());
            }
        } else if (last != null) {
            last.kill("the start was given up");
            last.ended().join();
        }
        model.remove(this);
    }
}
