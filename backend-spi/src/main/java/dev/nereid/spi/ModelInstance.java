package dev.nereid.spi;

/**
 * One execution context of a loaded model, bound to one device. <em>Implemented by backends.</em>
 *
 * <p>Confined: never called by two threads at once, except {@link #isReady}. It is made on a control thread; with
 * {@link BackendTraits.Execution#LONG} and {@code DEVICE_BLOCKING} all executions, and at last {@link #close}, run on
 * one thread, the instance's own, so that a native context may be bound to it by the first execution. The server never
 * interrupts that thread while a backend runs on it.
 */
public interface ModelInstance extends AutoCloseable {
    /**
     * Runs a batch. May block as long as the execution takes.
     *
     * <p>When it returns, the server answers every request that is not answered yet: with the outputs put into its
     * response, or, for a decoupled model whose {@link InferenceRequest#sender() sender} was not taken, with the end
     * of its responses. Then inputs and buffers of the batch are taken back, but for requests whose sender was taken;
     * the backend must not keep references.
     * An execution that goes on after the return calls {@link Batch#defer} first.
     *
     * @param batch the requests, at least one, and their tensors; owned by the server
     * @throws BackendException if the whole batch failed: every request not answered yet is answered with it. To fail
     *     a single request use {@link InferenceRequest#fail}. Anything else thrown counts as
     *     {@link ErrorCode#INTERNAL} and is logged; the instance goes on to serve
     */
    void execute(Batch batch) throws BackendException;

    /**
     * Says whether the instance can serve. Asked for each readiness check of the model, on a thread of the network that
     * all its connections wait for, also while {@link #execute} runs: so it returns what a field holds. An instance
     * that has to find out does so during its executions, or on a thread of its own.
     *
     * @return {@code true} unless overridden
     */
    default boolean isReady() {
        return true;
    }

    /**
     * Frees what the instance holds. Called once, after the last {@link #execute} has returned, and the last deferred
     * execution and the last {@link ResponseSender} were ended. Does nothing by default.
     */
    @Override
    default void close() {}
}
