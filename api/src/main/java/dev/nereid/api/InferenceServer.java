package dev.nereid.api;

import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorMemory;

/**
 * A running inference server: the port for front ends and embedding programs. Safe for use by any thread.
 *
 * <p>Nothing here blocks.
 */
public interface InferenceServer {
    /**
     * Asks for one inference. Returns at once; everything else, errors included, is told to the observer: exactly one
     * terminal call, before or after this method returns, on this or another thread.
     *
     * <p>The call's memory is the server's from now on, whatever happens; it is released after the last response was
     * closed.
     *
     * @param call what is asked
     * @param observer who is told
     * @return the handle by which the caller withdraws the call
     */
    Cancellation infer(InferRequest call, ResponseObserver observer);

    /**
     * Returns the models that the server knows.
     *
     * @return the catalog, the same at every call
     */
    ModelCatalog models();

    /**
     * Returns the control over which models are loaded.
     *
     * @return the control, the same at every call
     */
    ModelControl control();

    /**
     * Returns the memory that clients share with the server.
     *
     * @return the registered memory, the same at every call
     */
    SharedMemory sharedMemory();

    /**
     * Returns the pool that memory of inputs and outputs comes from.
     *
     * @return the pool, the same at every call
     */
    TensorMemory memory();

    /**
     * Returns what counts requests that are refused before they are queued. Front ends report their own refusals there;
     * those of {@link #infer} are counted by the server.
     *
     * @return the counters, the same at every call
     */
    default Refusals refusals() {
        return Refusals.NONE;
    }

    /**
     * Returns what the server is.
     *
     * @return name, version and extensions
     */
    ServerMetadata metadata();

    /**
     * Says whether the server runs: from the end of its start until it stops.
     *
     * @return whether it is live
     */
    boolean isLive();

    /**
     * Says whether the server has begun to stop: it answers the calls it has, and is neither live nor ready any more.
     *
     * @return whether it stops, or has stopped
     */
    boolean isExiting();

    /**
     * Says whether the server can serve what it is meant to: live, and with strict readiness every model ready too.
     *
     * @return whether it is ready
     */
    boolean isReady();
}
