package dev.nereid.spi.function;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;

/**
 * The methods that all kinds of functions share. <em>Implemented by backends</em>, which choose one of the kinds.
 *
 * @since 1.0
 */
public sealed interface FunctionProvider extends BackendProvider
        permits AsyncTensorFunction, StreamingFunction, TensorFunction {
    /**
     * Returns the name of the backend in a model's configuration ({@code backend: "…"}).
     *
     * @return the name: lower-case letters, digits, {@code _} and {@code -}; as in {@link BackendFunction#name()}
     *     unless overridden
     * @throws IllegalStateException if the class lacks both this method and the annotation, or if its annotations
     *     declare a setting that no model can have
     */
    @Override
    default String name() {
        return FunctionDeclaration.of(getClass()).name();
    }

    /**
     * Returns the kind of execution: how long {@code apply} holds its thread. Called once, when the backend is created, on
     * a control thread.
     *
     * @return {@link BackendTraits.Execution#LONG}, as by default: one thread for each instance;
     *     {@link BackendTraits.Execution#SHORT} for a function that takes microseconds and never blocks: threads that
     *     serve the network may call it, and one that does not return stops all of their connections
     */
    default BackendTraits.Execution execution() {
        return BackendTraits.Execution.LONG;
    }

    /**
     * Frees the resources of an opened function. Called once on the result of {@code open}, on a control thread, when no
     * request uses it any more. Never called on a function that returned itself: the load fails if that has such a method.
     * Does nothing by default.
     */
    default void close() {}

    /**
     * Returns the tensors and the batching of the models of this function. The configuration of a model may leave out
     * these settings, and must not contradict them: its load fails otherwise. Called on control threads, several times
     * for each load and for several models at once; returns the same each time.
     *
     * @return inputs and outputs without batch dimension, and the largest batch that a configuration may ask for, which
     *     also applies where it has none; the transaction policy does not count, since it follows from the kind of
     *     function. Unless overridden, the declarations of the class's annotations; {@link ModelCompletion#EMPTY} if
     *     they declare nothing
     * @throws IllegalStateException as {@link #name()}
     */
    default ModelCompletion completion() {
        return FunctionDeclaration.completion(getClass());
    }

    /**
     * Returns what {@link #completion()} returns, where that depends on the model. Makes nothing that has to be closed.
     *
     * @param model the model, as far as it is configured
     * @return the result of {@link #completion()} by default
     * @throws BackendException if the function cannot serve the model; its load fails with this error
     */
    default ModelCompletion completion(ModelContext model) {
        return completion();
    }
}
