package dev.nereid.server.lifecycle;

import java.util.Optional;
import java.util.concurrent.Executor;

/** Identifies the content that executes requests, for the keys of cached responses. Safe for use by any thread. */
public interface LoadIdentity {
    /** The identity of a model in a server without a response cache. */
    LoadIdentity NONE = new LoadIdentity() {
        @Override
        public Optional<String> known() {
            return Optional.empty();
        }

        @Override
        public void compute() {}
    };

    /**
     * Returns the identity. Never blocks.
     *
     * @return a text, equal for equal content on all servers; empty until it is computed
     */
    Optional<String> known();

    /** Computes the identity by an executor, if it is not known and was not requested before. Never blocks. */
    default void computeOn(Executor executor) {}

    /**
     * Computes the identity, unless it is known. Blocks.
     *
     * @throws dev.nereid.api.InferenceException if files cannot be read
     */
    void compute();
}
