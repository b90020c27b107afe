package dev.nereid.scheduler.request;

import java.util.ArrayList;
import java.util.List;
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
 * <p>A thread that runs an instance may execute the next step itself, without a wake-up: {@link #enter} marks it as
 * free, and {@link #run} executes the step, after the thread has released its own instance.
 */
public final class Continuations {
    /** Queues requests of one model. */
    public interface Target {
        /**
         * Queues requests together. Completes requests that the queue refuses. If this throws, the caller completes the
         * requests that are in the list and wait.
         *
         * @param requests created and admitted requests of this model, at least one; valid during the call, which may
         *     remove the requests that are queued
         * @param mayRun whether the calling thread can execute a batch of them, which is passed to {@link #runLater}
         */
        void enqueue(List<ScheduledRequest> requests, boolean mayRun);
    }

    /** The requests of one target, in their order. */
    private record Group(Target target, List<ScheduledRequest> requests) {}

    /** The maximum number of executions of later steps that a thread runs in a row. */
    private static final int MAX_HOPS = 16;

    /** The maximum size of a list that is kept for the next requests. */
    private static final int MAX_KEPT = 256;

    private static final ThreadLocal<Continuations> CURRENT = ThreadLocal.withInitial(Continuations::new);

    /** The collected requests, in the order in which their targets came first. */
    private final List<Group> collected = new ArrayList<>();

    /** The group of the last request; {@code null} if it was offered. */
    private @Nullable Group recent;

    /** An empty list for the next group; {@code null} while one is in use. */
    private @Nullable List<ScheduledRequest> spare;

    /** The execution to run; {@code null} for none. One at a time: a second one's instance would wait for the first. */
    private @Nullable Runnable execution;

    private final ObserverScope scope = ObserverScope.current();
    private final Runnable offer = this::offer;
    private int hops;
    private boolean running;

    /** Returns whether the thread may execute a later step; {@code null} while it does not complete a batch. */
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
        scope.afterwards(offer);
        group(target).requests().add(request);
    }

    @SuppressWarnings("ReferenceEquality") // Each model has one target.
    private Group group(Target target) {
        if (recent == null || recent.target() != target) {
            recent = find(target);
        }
        return recent;
    }

    @SuppressWarnings("ReferenceEquality")
    private Group find(Target target) {
        for (int i = 0; i < collected.size(); i++) {
            if (collected.get(i).target() == target) {
                return collected.get(i);
            }
        }
        List<ScheduledRequest> requests = spare;
        Group made = new Group(target, requests == null ? new ArrayList<>() : requests);
        collected.add(made);
        spare = null;
        return made;
    }

    /**
     * Marks the thread as one that runs an instance and completes a batch; undone by {@link #exit}.
     *
     * @param isFree returns whether the thread has nothing else to do after the batch
     * @return the mark before, for {@link #exit}
     */
    public @Nullable BooleanSupplier enter(BooleanSupplier isFree) {
        BooleanSupplier before = free;
        free = isFree;
        return before;
    }

    /** Restores the mark that {@link #enter} returned. */
    public void exit(@Nullable BooleanSupplier before) {
        free = before;
    }

    /** Returns whether an execution waits for {@link #run}. */
    public boolean hasExecution() {
        return execution != null;
    }

    /**
     * Runs the execution that this thread took over, and all executions that follow from it. Called when the thread has
     * released its instance; a nested call has no effect.
     */
    public void run() {
        if (running) {
            return;
        }
        running = true;
        try {
            for (Runnable next = execution; next != null; next = execution) {
                execution = null;
                hops++;
                next.run();
            }
        } finally {
            hops = 0;
            running = false;
        }
    }

    /** Offers the collected requests to their queues, with further requests by observers of refused ones. */
    private void offer() {
        try {
            while (!collected.isEmpty()) {
                offerFirst();
            }
        } finally {
            if (!collected.isEmpty()) { // after an error
                offer();
            }
        }
    }

    private void offerFirst() {
        Group next = collected.removeFirst();
        recent = null;
        int size = next.requests().size();
        try {
            offer(next);
        } catch (Throwable e) { // such as the end of the stack of a plugin below the observers
            IndependentCalls.forEach(next.requests(), request -> request.failUnqueued(e));
        }
        keep(next.requests(), size);
    }

    private void offer(Group group) {
        BooleanSupplier idle = free;
        boolean mayRun = idle != null && execution == null && hops < MAX_HOPS && idle.getAsBoolean();
        group.target().enqueue(group.requests(), mayRun);
    }

    /** Runs an execution by the next {@link #run}. Called by a target for one execution, if it may run one. */
    public void runLater(Runnable acquired) {
        execution = acquired;
    }

    /** Keeps the list, which had at most {@code size} requests, so that not every batch grows a new one. */
    private void keep(List<ScheduledRequest> requests, int size) {
        if (size <= MAX_KEPT) {
            requests.clear();
            spare = requests;
        }
    }
}
