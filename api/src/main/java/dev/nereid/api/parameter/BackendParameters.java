package dev.nereid.api.parameter;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Parameters;
import java.util.Map;
import java.util.Optional;

/**
 * Settings of a backend, from {@code --backend-config}. Immutable.
 *
 * @param backend the name of the backend, which errors contain
 * @param values the settings
 */
public record BackendParameters(String backend, Parameters values) implements Parameters {
    /** Checks the components. */
    public BackendParameters {
        requireNonNull(backend, "backend");
        requireNonNull(values, "values");
    }

    /**
     * Returns the settings of a backend.
     *
     * @param backend the name of the backend
     * @param values the settings by name; copied
     * @return the settings
     */
    public static BackendParameters of(String backend, Map<String, String> values) {
        return new BackendParameters(backend, Parameters.of(values));
    }

    @Override
    public Optional<Object> value(String name) {
        return values.value(name);
    }

    @Override
    public Map<String, Object> asMap() {
        return values.asMap();
    }

    @Override
    public String label(String name) {
        return "--backend-config=" + backend + "," + name;
    }
}
