package dev.nereid.backend.tensorflow;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import java.util.Optional;
import java.util.Set;

/** Placeholder of the TensorFlow backend: its models fail to load with that reason. Immutable. */
public final class TensorFlowBackendProvider implements BackendProvider {
    private static final String REASON = "not available: this version of Nereid has no TensorFlow runtime";

    @Override
    public String name() {
        return "tensorflow";
    }

    @Override
    public Set<String> platforms() {
        return Set.of("tensorflow_graphdef", "tensorflow_savedmodel");
    }

    @Override
    public Optional<String> unavailable() {
        return Optional.of(REASON);
    }

    @Override
    public Backend create(BackendContext context) throws BackendException {
        throw new BackendException(ErrorCode.UNAVAILABLE, REASON);
    }
}
