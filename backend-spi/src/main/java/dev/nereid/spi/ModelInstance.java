package dev.nereid.spi;

import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * One execution context of a loaded model, bound to one device. <em>Implemented by backends.</em>
 *
 * <p>Confined: never called by two threads at once, except {@link #checkReady} and {@link
 * #executionOverdue}. It is created on a control thread; with
 * {@link BackendTraits.Execution#LONG} and {@code DEVICE_BLOCKING} all executions, and at last {@link #close}, run on
 * the instance's own thread. That thread starts with the first execution at the latest, and may end when there was no work
 * for a minute: the next execution runs on another one then. A backend that binds something to the thread, such as a
 * native context, declares {@link BackendTraits#withLastingThreads()}; all executions and the close run on one thread
 * then. An instance without a thread may be closed on any control thread. The server never interrupts the thread while a
 * backend runs on it.
 *
 * @since 1.0
 */
public interface ModelInstance extends AutoCloseable {
    /**
     * Returns a stage that completes when the instance can execute.
     *
     * <p>An instance that needs long for its start, such as a process, begins it in {@link Model#newInstance}, which returns
     * at once. All instances of a model start at the same time then, and other models are loaded meanwhile. The load of the
     * model, or the change that adds the instance, ends when all have started; warm-ups follow. Called once, right after
     * {@code newInstance}, on the same thread.
     *
     * <p>There is no limit of time; the log names instances that have not started after an hour. When the server stops
     * to wait, since another instance failed or the server stops, it cancels the stage
     * ({@link CompletableFuture#cancel} of {@link CompletionStage#toCompletableFuture}), and calls {@link #close} when
     * the stage has ended: after such a cancel at once, although work behind the stage may go on, which {@code close}
     * ends. A stage that does not end delays the close of instance, model and plugin until it does.
     *
     * @return the stage, completed on any thread; completed already by default. If it fails, the load or the change fails:
     *     with code and text of a {@link BackendException}, and with {@link ErrorCode#INTERNAL} otherwise
     * @throws BackendException as {@link Model#newInstance}; the instance is closed
     */
    default CompletionStage<Void> started() {
        return CompletableFuture.completedStage(null);
    }

    /**
     * Runs a batch. May block as long as the execution takes.
     *
     * <p>When it returns, the server completes every request that is not complete yet: with the outputs put into its
     * response, or, for a decoupled model without a call of {@link InferenceRequest#sender()}, with the end of its
     * responses. Then it frees inputs and buffers of the batch, except for requests with a sender; the backend must not
     * keep references. An execution that continues after the return calls {@link Batch#defer} first.
     *
     * @param batch the requests, at least one, and their tensors; owned by the server
     * @throws BackendException if the whole batch failed: every request that is not complete yet fails with it. To fail
     *     a single request use {@link InferenceRequest#fail}. Any other exception counts as
     *     {@link ErrorCode#INTERNAL} and is logged; the instance continues to serve
     */
    void execute(Batch batch);

    /**
     * Says that a sequence ended without its last request. The instance can drop its state for the sequence. Called
     * between executions, on the thread of one, and only for a sequence of which the instance has executed a request. A
     * later sequence may have the same id; its first request comes afterwards. Does nothing by default.
     *
     * @param id the id of the sequence
     * @param reason why it ended
     */
    default void sequenceEnded(Sequence.Id id, SequenceEnd reason) {}

    /**
     * Checks whether the instance can serve. Called for readiness checks of the model, on any thread, also while
     * {@link #execute} runs or the instance is closed. It returns at once, since all connections of an event loop may wait
     * for it: a check that takes longer completes the stage later. A model is ready while one of its instances is; the
     * check has no effect on requests.
     *
     * <p>One check of an instance is in progress at a time, and its result is that of all clients that ask meanwhile.
     * After ten seconds the instance counts as not ready, until the check ends and another one is begun. An
     * {@linkplain InstanceContext#unavailable unavailable} instance is not checked.
     *
     * @return a stage that completes normally if the instance can serve. A {@link BackendException} says why it cannot:
     *     clients receive code and text. Any other failure counts as {@link ErrorCode#INTERNAL} and is logged
     */
    default CompletionStage<Void> checkReady() {
        return CompletableFuture.completedStage(null);
    }

    /**
     * Says that an execution exceeds the limit of the watchdog. It may be deferred. A backend that runs models in other
     * processes can log the stack there, since the log has the stack of the server's thread alone. Called once for each
     * report, on any thread, while {@link #execute} runs; it must not block. The execution may end meanwhile. Its
     * exceptions are logged. Does nothing by default.
     */
    default void executionOverdue() {}

    /**
     * Frees the resources of the instance. Called once, after the last {@link #execute} has returned, the last deferred
     * execution and the last {@link ResponseSender} were ended, and the work of the last {@link Fence} has ended, its responses
     * were read, and outputs that lie in memory of the instance were released. Does nothing by default.
     */
    @Override
    default void close() {}
}
