package dev.nereid.spi;

/**
 * An execution that continues after {@link ModelInstance#execute} returned. Safe for use by any thread; exactly one
 * call ends it, and later ones do nothing. It may end before {@code execute} returns; the batch is then over for
 * everyone, and the instance's next execution still waits for the return. <em>Implemented by the server.</em>
 */
public interface DeferredExecution {
    /**
     * Ends the execution: the server answers every request that is not answered yet, as after a return of
     * {@link ModelInstance#execute}, and takes back inputs and buffers.
     */
    void finish();

    /**
     * Ends the execution with an error: every request that is not answered yet is answered with it.
     *
     * @param error what went wrong
     */
    void fail(BackendException error);
}
