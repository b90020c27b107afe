package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;

/**
 * Passes batches to an instance. Safe for use by any thread; an {@link InstanceHandle} is used by the thread that runs
 * its instance.
 *
 * <p>Instances pull: each takes its next batch itself when it is free. A {@link BatchSource} serves all instances of
 * a model, or with sequences one of them.
 *
 * <p>No method calls a backend, an observer or other foreign code under a lock.
 */
public interface WorkSource {
    /**
     * Registers an instance.
     *
     * @param directRun runs the instance on the thread that acquired it, and then calls {@link #finishDirectRun}
     * @param load the load of the instance by the rate limiter; must not take any lock
     */
    InstanceHandle register(Runnable directRun, LongSupplier load);

    /**
     * Makes a registered instance idle before it has a thread. Called at most once, before any thread takes batches for
     * it. The instance may be run directly like any other.
     *
     * @param starter starts the instance's thread, which then calls {@link #take} or {@link #awaitWork}. Called without
     *     a lock, on the thread that found work for the instance; must not throw. If it starts no thread, it calls
     *     {@link #startFailed}
     */
    void addUnstarted(InstanceHandle handle, Runnable starter);

    /**
     * Makes an instance idle again after its thread was not started. A later request tries again. The caller has
     * completed the requests of the handle, and does not use the handle any more.
     *
     * @return the requests that no other instance can execute, to be completed by the caller
     */
    List<ScheduledRequest> startFailed(InstanceHandle handle);

    /**
     * Removes an instance without a thread from the idle ones: its thread is not started any more. Waits while another
     * thread runs the instance directly, or tries to start its thread. Called after the source was stopped or the
     * instance retired; then the caller alone uses the handle, and has to {@link #deregister} it once.
     */
    void removeUnstarted(InstanceHandle handle);

    /**
     * Waits for a batch or expired requests, and adds them to the handle.
     *
     * @return {@code false} if the instance has no more work, ever: it was retired, or the source was stopped, and no
     *     request may be rescheduled; or if its thread was woken to {@link #leave}
     */
    boolean take(InstanceHandle handle);

    /** Takes a batch like {@link #take}, but returns {@code false} instead of waiting. */
    boolean poll(InstanceHandle handle);

    /**
     * Waits until there is a batch, and leaves it in the source. The batch may have changed or gone when it is taken.
     *
     * @return {@code false} for the reasons of {@link #take}
     */
    boolean awaitWork(InstanceHandle handle);

    /**
     * Wakes the thread of an instance that waits for work since a time or longer, so that it {@linkplain #leave leaves}.
     * Does nothing if the instance has work, or if its thread {@linkplain InstanceHandle#restartBy cannot} be started
     * again. Called by any thread.
     *
     * @param sinceNanos the time, on the scale of the source's clock
     */
    default void rest(InstanceHandle handle, long sinceNanos) {}

    /**
     * Makes an instance one without a thread, as {@link #addUnstarted} does. Called by the instance's own thread when
     * {@link #take} or {@link #awaitWork} has returned {@code false}. Afterwards the thread does not use the handle, unless
     * it waits for work again: it then takes the instance back.
     *
     * @return {@code false} if the instance has no more work, ever
     */
    default boolean leave(InstanceHandle handle) {
        return false;
    }

    /** Returns whether there is a batch that an instance may take now. */
    boolean hasWork(InstanceHandle handle);

    /**
     * Takes another batch for direct execution, as {@link #poll} does, or makes the instance idle again.
     *
     * @param mayRun whether the caller may run another batch
     * @return whether there is another batch; if not, the caller must not run the instance any more
     */
    boolean finishDirectRun(InstanceHandle handle, boolean mayRun);

    /**
     * Counts an execution that goes on after the return of its backend. Called by the thread that ran the instance,
     * before it takes another batch.
     */
    void deferred(InstanceHandle handle);

    /** Ends the count of a {@linkplain #deferred deferred} execution. Called by any thread. */
    void deferredEnded(InstanceHandle handle);

    /**
     * Applies a change of an instance's availability: an unavailable instance takes no batches. Called by any thread,
     * after each change. A batch that was taken before is executed.
     *
     * @param unavailable returns whether the instance takes no batch, at the time of the call; must not take any lock
     */
    default void availabilityChanged(InstanceHandle handle, BooleanSupplier unavailable) {}

    /**
     * Stops an instance from taking new work; its thread has to {@link #deregister} when {@link #take} returns
     * {@code false}. An instance without a thread is not woken any more, unless it may still take batches.
     *
     * @return whether it may still take batches that are bound to it
     */
    boolean retire(InstanceHandle handle);

    /**
     * Gives up the requests in the executions of an instance with a thread that does not return: they are never
     * rescheduled.
     */
    void lose(InstanceHandle handle);

    /** Deregisters an instance; returns the requests that no other can execute, to be completed by the caller. */
    List<ScheduledRequest> deregister(InstanceHandle handle);
}
