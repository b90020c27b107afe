package dev.nereid.scheduler;

import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.client.RunningExecution;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.instance.Warmup;
import dev.nereid.scheduler.queue.SequenceUse;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/** Controls the instances of one scheduler: warm-up, replacement and watch. An ensemble has none. Safe for use by any thread. */
public interface InstanceControl {
    /**
     * Waits until every instance has executed its warm-up; each takes requests from then on. Blocks: called on a
     * control thread. If the scheduler is closed before, the warm-up ends early, and waiting requests are refused.
     *
     * @throws InferenceException {@link dev.nereid.spi.ErrorCode#INVALID_ARGUMENT} with the name of a sample and all
     *     its errors if one failed: no instance takes a request then, and the caller has to close the scheduler
     * @throws InterruptedException if the thread is interrupted meanwhile; the caller has to close the scheduler
     */
    void awaitWarm() throws InterruptedException;

    /**
     * Replaces instances while the others serve. The new ones are warmed up before they take requests; then the old
     * ones are retired. Blocks until then: called on a control thread, by one at a time. The old ones complete their
     * requests, and are closed by their own threads when their last response is closed; {@link Scheduler#close} waits for that.
     *
     * @param added the new instances; owned and later closed by the scheduler, even if this throws
     * @param removed instances of this scheduler to retire; with {@code added} empty, some must be left
     * @param warmup the samples that each new instance executes before its first request
     * @throws InferenceException as {@link #awaitWarm} if a new instance fails; then all new ones are closed, and the
     *     old ones serve on
     * @throws InterruptedException if the thread is interrupted during the warm-up; has the same effect as a failure
     */
    void replace(List<Instance> added, Collection<Instance> removed, List<Warmup.Sample> warmup)
            throws InterruptedException;

    /**
     * Waits until {@linkplain #replace replaced} instances are closed. An instance with sequences ends with them, and is not
     * waited for. Blocks: called on a control thread. The stop of the server ends the wait.
     *
     * @param removed the replaced instances
     * @param nanos how long to wait
     * @return whether they are closed; {@code false} also after an interrupt, which stays set
     */
    boolean awaitClosed(Collection<Instance> removed, long nanos);

    /**
     * Ends current and later warm-ups after their current executions: {@link #awaitWarm} and {@link #replace} fail
     * then. Has no effect without a warm-up. Ends waits of {@link #awaitClosed}. Never blocks.
     */
    void endWarmups();

    /**
     * Ends the {@linkplain SchedulerEnvironment#schedulerDelay scheduler delay}: instances take waiting requests,
     * however few. Called when a stop begins. Never blocks; may be called by any thread.
     */
    void endDelay();

    /** Returns the number of reported executions that exceed their time limit now, deferred ones included. */
    long overdue();

    /** Returns the number of executions that exceeded their time limit since the start. */
    long overdueTotal();

    /** Returns the number of executions of the present instances that ended with an {@link OutOfMemoryError}. */
    long outOfMemoryTotal();

    /** Returns how many outputs the backend has changed since the start after it had passed them to the server. */
    long changedOutputsTotal();

    /** Returns the sequences of the model; empty for a model without sequences. */
    Optional<SequenceUse> sequenceUse();

    /** Returns the name of the instance that a thread executes, even a submitting thread; empty if none. */
    Optional<String> instanceOn(Thread thread);

    /** Returns the executing threads by the names of their instances, at this moment, without deferred executions. */
    Map<String, Thread> executing();

    /** Returns the execution of this model on a thread at this moment, even a submitting thread; empty if none. */
    Optional<RunningExecution> executionOn(Thread thread);

    /**
     * Abandons the execution of a thread, even a submitting one, that will not return. The thread ends the process; the
     * call has no effect on a thread without an execution. The requests of the execution complete with
     * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}, {@link Scheduler#close} does not wait for it, and its instance is
     * never closed.
     */
    void loseExecutionOn(Thread thread);

    /** Returns the number of requests with a sender that the plugin has not ended. */
    int openSenders();

    /** Returns the number of requests with such a sender and without a client: completed, or cancelled. */
    int forsakenSenders();

    /** Returns the number of leases on inputs that the plugin has not ended. */
    long openLeases();
}
