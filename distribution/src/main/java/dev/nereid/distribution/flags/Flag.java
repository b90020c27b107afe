package dev.nereid.distribution.flags;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A flag of a command. Immutable; what it sets belongs to whoever declared it.
 *
 * @param names its name, then its other names, each with its dashes
 * @param label what stands for its value in the help text; empty for a switch, which has none
 * @param description what it does, for the help text
 * @param setter takes a value as written; returns what was expected if it cannot be used
 */
public record Flag(List<String> names, String label, String description, Function<String, Optional<String>> setter) {
    private static final String VARIABLE_PREFIX = "NEREID_";

    public Flag {
        names = List.copyOf(names);
    }

    /** Declares a flag. */
    public static <T> Flag of(String name, FlagValue<T> value, String description, Consumer<T> setter) {
        return new Flag(List.of(name), value.label(), description, text -> read(value, text, setter));
    }

    /** Declares a flag that has no value. */
    public static Flag toggle(String name, String description, Runnable setter) {
        return new Flag(List.of(name), "", description, text -> {
            setter.run();
            return Optional.empty();
        });
    }

    /** Returns the same flag with one more name. */
    Flag or(String name) {
        return new Flag(List.of(name(), name), label, description, setter);
    }

    /** Returns the name that errors use. */
    String name() {
        return names.getFirst();
    }

    /** Says whether it is given without a value. */
    boolean isToggle() {
        return label.isEmpty();
    }

    /** Returns the variable of the environment that stands in for the flag: {@code NEREID_HTTP_PORT}. */
    String variable() {
        return VARIABLE_PREFIX + name().substring(2).replace('-', '_').toUpperCase(Locale.ROOT);
    }

    /** Takes a value. */
    void set(String text) throws UsageException {
        Optional<String> expected = setter.apply(text);
        if (expected.isPresent()) {
            throw new UsageException(name() + ": '" + text + "' (expected: " + expected.get() + ")");
        }
    }

    private static <T> Optional<String> read(FlagValue<T> value, String text, Consumer<T> setter) {
        Optional<T> read = value.reader().apply(text);
        read.ifPresent(setter);
        return read.isPresent() ? Optional.empty() : Optional.of(value.expected());
    }
}
