package dev.nereid.spi;

import java.util.concurrent.CompletionStage;

/**
 * Sends requests to models of the same server. Safe for use by any thread. <em>Implemented by the server.</em>
 *
 * <p>A request passes the same checks and limits as that of a network client, and its tensors are not copied. Outputs
 * lie in memory that the traits of the sender's backend accept ({@link BackendTraits#places()}).
 *
 * @since 1.0
 */
@Incubating
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
     * Loads a model, or loads it again if its files have changed. Never blocks. Only where clients may load models: in the
     * explicit and the demand control mode.
     *
     * @param model the name of a model in a repository of the server; with namespaces, all models of that name are loaded,
     *     as for a client
     * @return completes when the model is ready, or exceptionally with a {@link BackendException}. Do not wait for it
     *     while a model is loaded or an instance is created: the threads that load models are few
     */
    CompletionStage<Void> load(String model);

    /**
     * Unloads a model. Requests in progress are completed. Never blocks. Only where clients may unload models.
     *
     * @param model the name of a model; with namespaces, all models of that name are unloaded, as for a client
     * @return completes when the model accepts no more requests, or exceptionally with a {@link BackendException}
     */
    CompletionStage<Void> unload(String model);
}
