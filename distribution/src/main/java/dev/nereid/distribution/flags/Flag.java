package dev.nereid.distribution.flags;

import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Consumer;
import java.util.function.Function;

/**
 * A flag of a command. Immutable; the target of its setter belongs to the code that declared it.
 *
 * @param names the name, then other names, each with its dashes
 * @param label the placeholder of the value in the help text; empty for a toggle, which has no value
 * @param description the effect, for the help text
 * @param fromEnvironment whether a variable of the environment supplies the value where the flag is not given
 * @param notice the log line for a given flag; empty for none
 * @param setter parses and sets a value; returns the expected form if the value is invalid
 */
public record Flag(
        List<String> names,
        String label,
        String description,
        boolean fromEnvironment,
        String notice,
        Function<String, Optional<String>> setter) {
    private static final String VARIABLE_PREFIX = "NEREID_";

    public Flag {
        names = List.copyOf(names);
    }

    /** Declares a flag. */
    public static <T> Flag of(String name, FlagValue<T> value, String description, Consumer<T> setter) {
        return new Flag(List.of(name), value.label(), description, true, "", text -> read(value, text, setter));
    }

    /** Declares a flag without a value. */
    public static Flag toggle(String name, String description, Runnable setter) {
        return new Flag(List.of(name), "", description, true, "", text -> {
            setter.run();
            return Optional.empty();
        });
    }

    /**
     * Declares a flag of the reference server that has no effect here. Its value is checked, and a line says why.
     *
     * @param value the type of its values
     * @param description its effect on the reference server
     * @param unused why it has no effect
     */
    static Flag withoutEffect(String name, FlagValue<?> value, String description, String unused) {
        return new Flag(
                List.of(name),
                value.label(),
                description + " Accepted for compatibility, without effect: " + unused + ".",
                true,
                "accepted, without effect: " + unused,
                text -> value.reader().apply(text).isPresent() ? Optional.empty() : Optional.of(value.expected()));
    }

    /** Returns the same flag with a notice. */
    Flag withNotice(String text) {
        return new Flag(names, label, description, fromEnvironment, text, setter);
    }

    /** Returns the same flag with one more name. */
    Flag or(String name) {
        return new Flag(List.of(name(), name), label, description, fromEnvironment, notice, setter);
    }

    /** Returns the same flag without a variable of the environment, for what belongs to one command line. */
    public Flag withoutVariable() {
        return new Flag(names, label, description, false, notice, setter);
    }

    /** Returns the name used in errors. */
    String name() {
        return names.getFirst();
    }

    /** Returns whether the flag has no value. */
    boolean isToggle() {
        return label.isEmpty();
    }

    /** Returns the environment variable that supplies the flag's value: {@code NEREID_HTTP_PORT}. */
    String variable() {
        return VARIABLE_PREFIX + name().substring(2).replace('-', '_').toUpperCase(Locale.ROOT);
    }

    /** Parses and sets a value. */
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
