package dev.nereid.spi;

/**
 * An execution that continues after {@link ModelInstance#execute} returned. Safe for use by any thread; exactly one
 * call ends it, and later ones do nothing. It may end before {@code execute} returns; the batch is then over,
 * and the instance's next execution still waits for the return. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface DeferredExecution {
    /**
     * Ends the execution. The server completes every request that is not complete yet, as after a return of {@link
     * ModelInstance#execute}, and frees inputs and buffers. It waits for the {@link Fence}s of outputs, so it is not for a
     * thread that their work needs.
     */
    void complete();

    /**
     * Ends the execution with an error. Every request that is not complete yet fails with it. Waits as {@link #complete}
     * does.
     *
     * @param error the error
     */
    void fail(BackendException error);
}
