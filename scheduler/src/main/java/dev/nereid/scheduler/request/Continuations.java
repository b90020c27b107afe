package dev.nereid.scheduler.request;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Collects the requests that observers submit while responses are delivered. Confined to one thread.
 *
 * <p>A response of one model may cause a request to another. Such a request is not executed on the stack of the thread
 * that delivers the response, and the requests of one batch are not queued one by one: they are collected while an
 * {@link ObserverScope} is open, and offered to their queues together when the outermost one is closed. Scopes are open
 * during calls of observers only, never during an execution, so a request that a backend submits is queued at once.
 *
 * <p>A thread that runs an instance may execute the next step itself, without a wake-up: {@link #enter} says that it is
 * free, and {@link #run} executes what it got, after the thread has released its own instance.
 */
public final class Continuations {
    /** Queues requests of one model. */
    public interface Target {
        /**
         * Queues requests together. Completes those that cannot be queued; never throws.
         *
         * @param requests created and admitted requests of this model, at least one
         * @param mayRun whether the caller can execute a batch of them itself, later on this thread
         * @return the execution that the caller has to run; {@code null} if other threads execute the requests
         */
        @Nullable
        Runnable enqueue(List<ScheduledRequest> requests, boolean mayRun);
    }

    private record Submission(Target target, ScheduledRequest request) {}

    /** The maximum number of executions of later steps that a thread runs in a row. */
    private static final int MAX_HOPS = 16;

    private static final ThreadLocal<Continuations> CURRENT = ThreadLocal.withInitial(Continuations::new);

    private final List<Submission> collected = new ArrayList<>();
    private final Queue<Runnable> executions = new ArrayDeque<>();
    private final ObserverScope scope = ObserverScope.current();
    private final Runnable offer = this::offer;
    private int hops;
    private boolean running;

    /** Says whether the thread may execute a later step; {@code null} while it does not complete a batch. */
    private @Nullable BooleanSupplier free;

    private Continuations() {}

    /** Returns the continuations of the calling thread. */
    public static Continuations current() {
        return CURRENT.get();
    }

    /** Returns whether the thread calls observers: requests are collected. */
    public boolean isOpen() {
        return scope.isOpen();
    }

    /** Adds a request, to be queued when the outermost scope is closed. Called while one is open. */
    public void add(Target target, ScheduledRequest request) {
        collected.add(new Submission(target, request));
        scope.afterwards(offer);
    }

    /**
     * Marks the thread as one that runs an instance and completes a batch; undone by {@link #exit}.
     *
     * @param thatIsFree whether the thread has nothing else to do after the batch
     * @return the mark before, for {@link #exit}
     */
    public @Nullable BooleanSupplier enter(BooleanSupplier thatIsFree) {
        BooleanSupplier before = free;
        free = thatIsFree;
        return before;
    }

    /** Restores the mark that {@link #enter} returned. */
    public void exit(@Nullable BooleanSupplier before) {
        free = before;
    }

    /** Returns whether executions wait for {@link #run}. */
    public boolean hasExecutions() {
        return !executions.isEmpty();
    }

    /**
     * Runs the executions that this thread took over, and those that follow from them. Called when the thread has
     * released its instance; has no effect within itself.
     */
    public void run() {
        if (running || executions.isEmpty()) {
            return;
        }
        running = true;
        try {
            for (Runnable next = executions.poll(); next != null; next = executions.poll()) {
                hops++;
                next.run();
            }
        } finally {
            hops = 0;
            running = false;
        }
    }

    /** Offers the collected requests, and those that observers of refused ones submit, to their queues. */
    private void offer() {
        try {
            while (!collected.isEmpty()) {
                Target target = collected.getFirst().target();
                BooleanSupplier idle = free;
                boolean mayRun = idle != null && hops + executions.size() < MAX_HOPS && idle.getAsBoolean();
                Runnable execution = target.enqueue(remove(target), mayRun);
                if (execution != null) {
                    executions.add(execution);
                }
            }
        } catch (RuntimeException | Error e) { // such as no memory for a list
            while (!collected.isEmpty()) {
                collected.removeLast().request().failUnqueued(e);
            }
        }
    }

    /** Removes the requests of one target, in their order. */
    @SuppressWarnings("ReferenceEquality") // Each model has one target.
    private List<ScheduledRequest> remove(Target target) {
        List<ScheduledRequest> requests = new ArrayList<>(collected.size());
        int kept = 0;
        for (int i = 0; i < collected.size(); i++) {
            Submission next = collected.get(i);
            if (next.target() == target) {
                requests.add(next.request());
            } else {
                collected.set(kept++, next);
            }
        }
        collected.subList(kept, collected.size()).clear();
        return requests;
    }
}
