package dev.nereid.backend.tensorflow;

import dev.nereid.backend.tensorflow.capi.Processor;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import java.util.Optional;
import java.util.Set;

/** Entry point of the plugin: creates the TensorFlow backend. Immutable. */
public final class TensorFlowBackendProvider implements BackendProvider {
    /** Creates the provider; called by the service loader. */
    public TensorFlowBackendProvider() {}

    @Override
    public String name() {
        return "tensorflow";
    }

    @Override
    public Set<String> platforms() {
        return Set.of("tensorflow_graphdef", "tensorflow_savedmodel");
    }

    /** Returns whether TensorFlow runs on this processor, without loading or unpacking it. */
    @Override
    public Optional<String> unavailable() {
        return Processor.obstacle().map(reason -> "not available: " + reason);
    }

    @Override
    public Backend create(BackendContext context) {
        return TensorFlowBackend.open(context);
    }
}
