package dev.nereid.distribution.flags;

import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.function.Function;

/**
 * A flag of a command, added to its {@link Flags}. The target of its setter belongs to the code that added it. Confined
 * to the thread that reads the command line.
 */
public final class Flag {
    private static final String VARIABLE_PREFIX = "NEREID_";

    private final List<String> names = new ArrayList<>();
    private final String label;
    private final String ending;
    private final Function<String, Optional<String>> setter;
    private String description = "";
    private String notice = "";
    private boolean fromEnvironment = true;

    /**
     * Creates a flag.
     *
     * @param name the name, with its dashes
     * @param label the placeholder of the value in the help text; empty for a toggle, which has no value
     * @param ending the end of the description, such as the default
     * @param setter parses and sets a value; returns the expected form if the value is invalid
     */
    Flag(String name, String label, String ending, Function<String, Optional<String>> setter) {
        names.add(name);
        this.label = label;
        this.ending = ending;
        this.setter = setter;
    }

    public Flag help(String text) {
        description = text;
        return this;
    }

    /** Logs a line about the flag if it is given. */
    Flag notice(String text) {
        notice = text;
        return this;
    }

    Flag or(String name) {
        names.add(name);
        return this;
    }

    /** Reads no variable of the environment, for what belongs to one command line. */
    public Flag withoutVariable() {
        fromEnvironment = false;
        return this;
    }

    /** Returns the name, then other names. */
    List<String> names() {
        return names;
    }

    String name() {
        return names.getFirst();
    }

    /** Returns the placeholder of the value; empty for a toggle. */
    String label() {
        return label;
    }

    String description() {
        return description + ending;
    }

    /** Returns the log line for a given flag; empty for none. */
    String notice() {
        return notice;
    }

    /** Returns whether a variable of the environment supplies the value where the flag is not given. */
    boolean hasVariable() {
        return fromEnvironment && !isToggle();
    }

    /** Returns whether the flag has no value. */
    boolean isToggle() {
        return label.isEmpty();
    }

    /** Returns the environment variable that supplies the flag's value: {@code NEREID_HTTP_PORT}. */
    String variable() {
        return VARIABLE_PREFIX + name().substring(2).replace('-', '_').toUpperCase(Locale.ROOT);
    }

    void set(String text) throws UsageException {
        Optional<String> expected = setter.apply(text);
        if (expected.isPresent()) {
            throw new UsageException(name() + ": '" + text + "' (expected: " + expected.get() + ")");
        }
    }
}
