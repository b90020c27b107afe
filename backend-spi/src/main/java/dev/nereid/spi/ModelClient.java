package dev.nereid.spi;

import java.nio.ByteBuffer;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * Sends requests to models of a server. Safe for use by any thread. <em>Implemented by the server.</em> Models have it from
 * {@link ModelContext#models}, and programs that embed the server from the server.
 *
 * <p>A request passes the same checks and limits as that of a network client, and its tensors are not copied. Outputs
 * lie in memory that the traits of the sender's backend accept ({@link BackendTraits#places()}).
 *
 * @since 1.0
 */
public interface ModelClient {
    /**
     * Starts a request.
     *
     * @param model the name of a model of the server
     * @return the request, without inputs; owned by the caller until it is sent
     */
    ModelRequest request(String model);

    /**
     * Says whether a model can serve requests now. Never blocks.
     *
     * @param model the name of a model
     * @return whether a version of it is ready; {@code false} for a model that the server does not have
     */
    boolean isReady(String model);

    /**
     * Says whether a version of a model can serve requests now. Never blocks.
     *
     * @param model the name of a model
     * @param version the version, 0 or more, or -1 for the latest that is served
     * @return whether it is ready
     * @throws BackendException as the readiness request of a client fails: with {@link ErrorCode#NOT_FOUND} if the server
     *     has no such model or version, with {@link ErrorCode#UNAVAILABLE} if the version is not loaded, and with {@link
     *     ErrorCode#INVALID_ARGUMENT} for a version below -1
     */
    default boolean isReady(String model, long version) {
        return isReady(model);
    }

    /**
     * Says whether a version of a model is decoupled. A request to it gets any number of responses then. Never blocks.
     *
     * <p>For a model that is loaded on demand, and is not loaded, this is the setting in its configuration before
     * completion.
     *
     * @param model the name of a model
     * @param version the version, 0 or more, or -1 for the latest that is served
     * @return {@code true} for a model to which requests are sent with an observer alone; {@code false} by default
     * @throws BackendException as of {@link #isReady(String, long)}
     */
    default boolean isDecoupled(String model, long version) {
        return false;
    }

    /**
     * Loads a model, or loads it again if its files have changed. Never blocks. Only where clients may load models: in the
     * explicit and the demand control mode.
     *
     * @param model the name of a model in a repository of the server; with namespaces, all models of that name are loaded,
     *     as for a client
     * @return completes when the model is ready, or exceptionally with a {@link BackendException}: also with
     *     {@link ErrorCode#INVALID_ARGUMENT} if the load of the calling model, which is in progress, would have to end
     *     before, and with {@link ErrorCode#UNAVAILABLE} if 64 loads and unloads of the model wait. Do not wait for it
     *     while a model is loaded or an instance is created: the threads that load models are few
     */
    CompletionStage<Void> load(String model);

    /**
     * Loads a model with another configuration or other files, as {@link #load(String)}. They apply until the next load.
     *
     * @param model the name of a model, which has to mean one model
     * @param config the configuration as JSON in place of the one in the model's directory; empty for the latter. With
     *     files, it is not empty
     * @param files the files in place of all files in the model's directory: their content between position and limit,
     *     by paths like {@code 1/model.onnx}. Not changed until the stage completes; empty for the files of the
     *     directory
     * @return as of {@link #load(String)}; completes exceptionally with {@link ErrorCode#INVALID_ARGUMENT} for a wrong
     *     configuration, for more than 1000 files, and for paths that leave the directory
     */
    default CompletionStage<Void> load(String model, String config, Map<String, ByteBuffer> files) {
        return config.isEmpty() && files.isEmpty()
                ? load(model)
                : CompletableFuture.failedStage(
                        new BackendException(ErrorCode.UNSUPPORTED, "load with a configuration: not available"));
    }

    /**
     * Unloads a model. Requests in progress are completed. Never blocks. Only where clients may unload models.
     *
     * @param model the name of a model; with namespaces, all models of that name are unloaded, as for a client
     * @return completes when the model accepts no more requests, or exceptionally with a {@link BackendException}
     */
    CompletionStage<Void> unload(String model);

    /**
     * Unloads a model, as {@link #unload(String)}.
     *
     * @param model the name of a model
     * @param dependents whether models that only this one needed, such as the steps of an ensemble, are unloaded too
     * @return as of {@link #unload(String)}
     */
    default CompletionStage<Void> unload(String model, boolean dependents) {
        return dependents
                ? CompletableFuture.failedStage(
                        new BackendException(ErrorCode.UNSUPPORTED, "unload with dependents: not available"))
                : unload(model);
    }
}
