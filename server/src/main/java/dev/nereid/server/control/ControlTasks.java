package dev.nereid.server.control;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.repository.ModelKey;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Runs tasks that load, update and unload models, one at a time for each. Tasks of different models run at the same
 * time, in any number. Safe for use by any thread.
 *
 * <p>The tasks of a model run in the order of their submission, on a virtual thread that ends with the last one. A task
 * waits for tasks of models that its model needs and for no others, so that tasks cannot block each other; other
 * operations on several models chain the stages of their tasks. The lock guards the queues alone and is never held
 * while a task runs.
 */
final class ControlTasks {
    /** How many tasks of one model may wait. */
    static final int MAX_WAITING = 64;

    private static final Logger LOG = LoggerFactory.getLogger(ControlTasks.class);

    /** The work of a task. */
    @FunctionalInterface
    interface Work {
        /**
         * Does the work. May block.
         *
         * @throws InferenceException if it fails; any other exception is a fault of the server
         * @throws InterruptedException if the thread is interrupted, which nothing does so far
         */
        void run() throws InterruptedException;
    }

    private static final class Task {
        private final @Nullable Object shared;
        private final Work work;
        private final CompletableFuture<Void> outcome = new CompletableFuture<>();

        Task(@Nullable Object shared, Work work) {
            this.shared = shared;
            this.work = work;
        }
    }

    private final FatalErrorHandler fatalErrors;
    private final ReentrantLock lock = new ReentrantLock();
    private final Condition idle = lock.newCondition();

    /** The waiting tasks of each model that has a running one. */
    @GuardedBy("lock")
    private final Map<String, Deque<Task>> waiting = new HashMap<>();

    @GuardedBy("lock")
    private boolean ended;

    /** Creates a runner without tasks. */
    ControlTasks(FatalErrorHandler fatalErrors) {
        this.fatalErrors = fatalErrors;
    }

    /**
     * Submits a task for the model with a name.
     *
     * @return completes after the task, on its thread; fails with {@link InferenceException} alone
     */
    CompletionStage<Void> submit(String model, Work work) {
        return submit(model, new Task(null, work));
    }

    /**
     * Submits a task, unless the last one that waits is equal.
     *
     * <p>Earlier ones are not compared: in A, B, A the last task decides which versions are served, so that it has to
     * run again after B. Where B is a load without parameters, A runs twice although once would do; where A is one, its
     * second run finds no change. A running task is not shared either, since it may have read the repository before a
     * change.
     *
     * @param model the model's name
     * @param key equal for tasks that do the same
     * @return completed after the work of the task that is shared, as by {@link #submit}
     */
    CompletionStage<Void> share(String model, Object key, Work work) {
        return submit(model, new Task(key, work));
    }

    private CompletionStage<Void> submit(String model, Task task) {
        Optional<InferenceException> refusal = Optional.empty();
        boolean starts = false;
        lock.lock();
        try {
            Deque<Task> queue = waiting.get(model);
            if (ended) {
                refusal = Optional.of(ended());
            } else if (queue == null) {
                waiting.put(model, new ArrayDeque<>());
                starts = true;
            } else if (isShared(queue.peekLast(), task)) {
                return queue.getLast().outcome.minimalCompletionStage(); // done once for both
            } else if (queue.size() >= MAX_WAITING) {
                refusal = Optional.of(new InferenceException(
                        ErrorCode.UNAVAILABLE,
                        "model '" + Quoted.text(ModelKey.name(model)) + "': " + MAX_WAITING
                                + " loads and unloads are waiting already (expected: fewer; retry later)"));
            } else {
                queue.add(task);
            }
        } finally {
            lock.unlock();
        }
        if (refusal.isPresent()) {
            task.outcome.completeExceptionally(refusal.get());
        } else if (starts) {
            Thread.ofVirtual().name("control/" + model).start(() -> runAll(model, task));
        }
        return task.outcome.minimalCompletionStage();
    }

    private static boolean isShared(@Nullable Task last, Task task) {
        return last != null && last.shared != null && last.shared.equals(task.shared);
    }

    private void runAll(String model, Task first) {
        for (Task task = first; task != null; task = next(model)) {
            run(model, task);
        }
    }

    /** Takes the next task of a model; without one, the model is idle. */
    private @Nullable Task next(String model) {
        lock.lock();
        try {
            Deque<Task> queue = waiting.get(model);
            Task next = queue == null ? null : queue.poll();
            if (next == null) {
                waiting.remove(model);
                idle.signalAll();
            }
            return next;
        } finally {
            lock.unlock();
        }
    }

    private void run(String model, Task task) {
        try {
            task.work.run();
            task.outcome.complete(null);
        } catch (InferenceException e) {
            task.outcome.completeExceptionally(e);
        } catch (InterruptedException e) {
            task.outcome.completeExceptionally(ended());
        } catch (RuntimeException | Error e) {
            fatalErrors.check(e);
            LOG.atError()
                    .addKeyValue("model", model)
                    .setCause(e)
                    .log("control task failed unexpectedly (model '{}')", model);
            task.outcome.completeExceptionally(
                    new InferenceException(ErrorCode.INTERNAL, ServerPaths.namesAlone("internal error: " + e, "")));
        }
    }

    /** Accepts no more tasks, and fails the waiting ones. Running tasks continue. Later calls do nothing. */
    void end() {
        List<Task> refused = new ArrayList<>();
        lock.lock();
        try {
            ended = true;
            for (Deque<Task> queue : waiting.values()) {
                refused.addAll(queue);
                queue.clear();
            }
        } finally {
            lock.unlock();
        }
        refused.forEach(task -> task.outcome.completeExceptionally(ended()));
    }

    /** Waits for the tasks that run; returns whether all ended in time. */
    boolean awaitEnd(long nanos) throws InterruptedException {
        long remaining = nanos;
        lock.lockInterruptibly();
        try {
            while (!waiting.isEmpty()) {
                if (remaining <= 0) {
                    return false;
                }
                remaining = idle.awaitNanos(remaining);
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    private static InferenceException ended() {
        return new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
    }

    /** Returns a stage that ends like a chain, but fails with the cause alone, without the exception of the chain. */
    static <T> CompletionStage<T> unwrapped(CompletionStage<T> chain) {
        CompletableFuture<T> outcome = new CompletableFuture<>();
        chain.whenComplete((value, failure) -> {
            if (failure == null) {
                outcome.complete(value);
            } else {
                Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
                outcome.completeExceptionally(cause == null ? failure : cause);
            }
        });
        return outcome.minimalCompletionStage();
    }

    /**
     * Waits for a task, on a thread that may block.
     *
     * @throws InferenceException if the task failed
     */
    static void await(CompletionStage<Void> outcome) throws InterruptedException {
        try {
            outcome.toCompletableFuture().get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof InferenceException failure
                    ? failure
                    : new InferenceException(
                            ErrorCode.INTERNAL, ServerPaths.namesAlone("internal error: " + e.getCause(), ""));
        }
    }
}
