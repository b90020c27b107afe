package dev.nereid.api.parameter;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Parameters;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Parameters of a request or response as a backend reads them. Immutable as a view; values are converted when they are
 * read.
 *
 * @param values the values by name; not copied
 */
public record ParameterView(Map<String, ParameterValue> values) implements Parameters {
    /** Without parameters. */
    private static final ParameterView NONE = new ParameterView(Map.of());

    /** Checks the component. */
    public ParameterView {
        requireNonNull(values, "values");
    }

    /**
     * Returns parameters as a backend reads them.
     *
     * @param values the values by name; not copied, and not changed while the result is in use
     * @return a view of them
     */
    public static Parameters of(Map<String, ParameterValue> values) {
        return values.isEmpty() ? NONE : new ParameterView(values);
    }

    @Override
    public Optional<Object> value(String name) {
        @Nullable ParameterValue value = values.get(requireNonNull(name, "name"));
        return value == null ? Optional.empty() : Optional.of(object(value));
    }

    @Override
    public Map<String, Object> asMap() {
        Map<String, Object> all = new LinkedHashMap<>();
        values.forEach((name, value) -> all.put(name, object(value)));
        return Collections.unmodifiableMap(all);
    }

    private static Object object(ParameterValue value) {
        return switch (value) {
            case ParameterValue.Bool(boolean flag) -> flag;
            case ParameterValue.Int(long integer) -> integer;
            case ParameterValue.Real(double number) -> number;
            case ParameterValue.Text(String text) -> text;
        };
    }
}
