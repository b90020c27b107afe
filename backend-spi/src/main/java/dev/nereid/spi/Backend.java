package dev.nereid.spi;

import java.util.Optional;

/**
 * A framework that loads models. <em>Implemented by backends.</em>
 *
 * <p>Called on control threads that may block; {@link #complete} and {@link #load} may be called for several models at
 * once. The server creates at most one backend of a provider at a time and shares it among all models.
 *
 * @since 1.0
 */
public interface Backend extends AutoCloseable {
    /**
     * Returns how instances are created and run. Called once, right after creation.
     *
     * @return the traits; {@link BackendTraits#DEFAULT} unless overridden
     */
    default BackendTraits traits() {
        return BackendTraits.DEFAULT;
    }

    /**
     * Completes a configuration from the model's own files: inputs, outputs, batching. Called before each load unless
     * auto-completion is off; the server merges the result, checks it, and then calls {@link #load}. Where it is off,
     * no limit of the batch size is checked either: {@code load} refuses what the model cannot run.
     *
     * @param context the model as configured so far, and its files
     * @return the values of the files, or empty if nothing needs completion
     * @throws BackendException if the files cannot be read or contradict the configuration; the load fails with it
     */
    default Optional<ModelCompletion> complete(ModelContext context) {
        return Optional.empty();
    }

    /**
     * Loads one version of a model.
     *
     * @param context the completed configuration and the files, valid until the model is closed
     * @return the model, owned and later closed by the server
     * @throws BackendException if the model cannot be loaded; everything allocated for it must have been freed
     */
    Model load(ModelContext context);

    /**
     * Frees the resources of the backend. Called once, after the last of its models was closed. The default does nothing.
     */
    @Override
    default void close() {}
}
