package dev.nereid.api;

import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.api.statistics.DemandStatistics;
import java.util.Optional;

/**
 * A running inference server: the port for front ends and embedding programs. Safe for use by any thread.
 *
 * <p>Nothing here waits. A backend with short executions may execute on the calling thread.
 */
public interface InferenceServer {
    /**
     * Starts one inference and returns at once. Responses and errors go to the observer, which gets exactly one terminal
     * call, before or after this method returns, on this or another thread.
     *
     * <p>The request's memory belongs to the server from now on, whatever happens; it is released after the last response
     * was closed.
     *
     * @param request the request
     * @param observer receives the responses
     * @return the handle by which the caller cancels the request
     */
    Cancellation infer(InferRequest request, ResponseObserver observer);

    /**
     * Returns the models of the server.
     *
     * @return the catalog, the same at every call
     */
    ModelCatalog models();

    /**
     * Returns the control that loads and unloads models.
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
     * Returns the pool of memory for inputs and outputs.
     *
     * @return the pool, the same at every call
     */
    TensorMemory memory();

    /**
     * Returns the counters of requests that are refused before they are queued. Front ends count their own refusals
     * there; the server counts the refusals of {@link #infer}.
     *
     * @return the counters, the same at every call
     */
    default Refusals refusals() {
        return Refusals.NONE;
    }

    /**
     * Returns the figures of models that are loaded on demand.
     *
     * @return the figures of this moment; empty by default, for servers without such models
     */
    default Optional<DemandStatistics> demand() {
        return Optional.empty();
    }

    /**
     * Returns the metadata of the server.
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
     * Says whether the server has begun to stop. It completes its requests then, and is no longer live or ready.
     *
     * @return whether it stops, or has stopped
     */
    boolean isExiting();

    /**
     * Says whether the server is ready: live, and with strict readiness every model ready too.
     *
     * @return whether it is ready
     */
    boolean isReady();
}
