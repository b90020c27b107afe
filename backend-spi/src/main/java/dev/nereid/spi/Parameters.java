package dev.nereid.spi;

import static java.util.Objects.requireNonNull;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;

/**
 * Named values of a request, a response, a model or a backend. Read only; safe for use by any thread. <em>Implemented by
 * the server</em>: tests create them by {@link #of}.
 *
 * <p>A parameter that is missing is empty. A value that does not fit fails the request or the load with
 * {@link ErrorCode#INVALID_ARGUMENT} and a text that names the parameter, such as
 * {@code parameter 'max_tokens': 0 (expected: 1 to 512)}. A number or truth value may also be given as its text, as
 * HTTP headers are that the server passes on as parameters, and all parameters of models and settings of backends.
 *
 * <p>Each read of a model's parameter declares its name: see {@link ModelContext#parameters}. Files of a model that a
 * parameter names are found by {@link ModelContext#file}.
 *
 * @since 1.0
 */
public interface Parameters {
    /**
     * Creates parameters from values.
     *
     * @param values each a {@link String}, {@link Long}, {@link Double} or {@link Boolean}; copied
     * @return the parameters, in the order of the map
     * @throws IllegalArgumentException if a value has another type
     */
    static Parameters of(Map<String, ?> values) {
        return ParameterReads.of(values);
    }

    /**
     * Returns a value as it is.
     *
     * @param name the name of a parameter
     * @return a {@link String}, {@link Long}, {@link Double} or {@link Boolean}; empty if it is missing. Open: later
     *     versions may add types, so a {@code switch} over it needs a {@code default}
     */
    Optional<Object> value(String name);

    /**
     * Returns all parameters.
     *
     * @return the values by name, as of {@link #value}; immutable
     */
    Map<String, Object> asMap();

    /**
     * Reads a text.
     *
     * @param name the name of a parameter
     * @return the text; empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if it is a number or a truth value
     */
    default Optional<String> text(String name) {
        return value(name).map(value -> ParameterReads.text(this, name, value));
    }

    /**
     * Reads a text that must be given.
     *
     * @param name the name of a parameter
     * @return the text
     * @throws BackendException as {@link #text}, and if the parameter is missing
     */
    default String required(String name) {
        return text(name).orElseThrow(missing(name));
    }

    /**
     * Reads a text that is one of several.
     *
     * @param name the name of a parameter
     * @param values the texts that are possible
     * @return one of {@code values}; empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if it is anything else
     */
    default Optional<String> choice(String name, String... values) {
        return value(name).map(value -> ParameterReads.choice(this, name, value, List.of(values)));
    }

    /**
     * Reads an integer.
     *
     * @param name the name of a parameter
     * @param min the least value
     * @param max the greatest value
     * @return the integer; empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if it is no integer, or out of these bounds
     */
    default OptionalInt integer(String name, int min, int max) {
        Optional<Object> value = value(name);
        return value.isEmpty()
                ? OptionalInt.empty()
                : OptionalInt.of(Math.toIntExact(ParameterReads.integer(this, name, value.get(), min, max)));
    }

    /**
     * Reads an integer of 64 bits.
     *
     * @param name the name of a parameter
     * @param min the least value
     * @param max the greatest value
     * @return the integer; empty if the parameter is missing
     * @throws BackendException as {@link #integer}
     */
    default OptionalLong longInteger(String name, long min, long max) {
        Optional<Object> value = value(name);
        return value.isEmpty()
                ? OptionalLong.empty()
                : OptionalLong.of(ParameterReads.integer(this, name, value.get(), min, max));
    }

    /**
     * Reads a number. An integer is one too.
     *
     * @param name the name of a parameter
     * @param min the least value
     * @param max the greatest value
     * @return the number; empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if it is no number, or out of these bounds; NaN is
     */
    default OptionalDouble number(String name, double min, double max) {
        Optional<Object> value = value(name);
        return value.isEmpty()
                ? OptionalDouble.empty()
                : OptionalDouble.of(ParameterReads.number(this, name, value.get(), min, max));
    }

    /**
     * Reads a truth value.
     *
     * @param name the name of a parameter
     * @return the value; empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if it is anything else
     */
    default Optional<Boolean> flag(String name) {
        return value(name).map(value -> ParameterReads.flag(this, name, value));
    }

    /**
     * Reads a length of time, such as {@code 250ms}.
     *
     * <p>It is a number of units, or a number with {@code ns}, {@code us}, {@code ms}, {@code s}, {@code m}, {@code h} or
     * {@code d}.
     *
     * @param name the name of a parameter
     * @param unit the unit of a number without one
     * @return the time, 0 or more, which fits in 64 bits of nanoseconds; empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if it is anything else
     */
    default Optional<Duration> duration(String name, TimeUnit unit) {
        requireNonNull(unit, "unit");
        Optional<Object> value = value(name);
        return value.isEmpty()
                ? Optional.empty()
                : Optional.of(Duration.ofNanos(ParameterUnits.nanos(this, name, value.get(), unit)));
    }

    /**
     * Reads a number of bytes, such as {@code 64M}.
     *
     * <p>It is an integer, or one with {@code K}, {@code M}, {@code G} or {@code T} for powers of 1024. The forms
     * {@code 64m} and {@code 64MiB} are the same.
     *
     * @param name the name of a parameter
     * @return the bytes, 0 or more; empty if the parameter is missing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if it is anything else
     */
    default OptionalLong byteSize(String name) {
        Optional<Object> value = value(name);
        return value.isEmpty() ? OptionalLong.empty() : OptionalLong.of(ParameterUnits.bytes(this, name, value.get()));
    }

    /**
     * Selects the parameters of which the names begin alike. The names remain whole: errors contain them.
     *
     * @param prefix the beginning, such as {@code session.}
     * @return a view of these parameters
     */
    default Parameters under(String prefix) {
        return new ParameterReads.Prefixed(this, prefix);
    }

    /**
     * Returns how errors name a parameter.
     *
     * <p>Examples are {@code parameter 'max_tokens'}, and {@code --backend-config=B,max_tokens} for a setting of the backend
     * B.
     *
     * @param name the name of a parameter
     * @return the beginning of errors about it
     */
    default String label(String name) {
        return "parameter '" + name + "'";
    }

    /**
     * Returns the error of a value that does not fit.
     *
     * <p>It is for forms that have no method here. An example is {@code parameter 'shape': 1x (expected: a shape such as
     * 1x3)}.
     *
     * @param name the name of a parameter
     * @param expected the values that fit
     * @return an exception with {@link ErrorCode#INVALID_ARGUMENT}; of a long value it has the beginning
     */
    default BackendException invalid(String name, String expected) {
        return ParameterReads.unexpected(this, name, value(name).orElse("missing"), expected);
    }

    /**
     * Returns the error of a parameter that must be given: {@code integer("k", 1, 9).orElseThrow(missing("k"))}.
     *
     * @param name the name of a parameter
     * @return creates a {@link BackendException} with {@link ErrorCode#INVALID_ARGUMENT}
     */
    default Supplier<BackendException> missing(String name) {
        return () -> ParameterReads.missing(this, name);
    }
}
