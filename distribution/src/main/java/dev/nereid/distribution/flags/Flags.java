package dev.nereid.distribution.flags;

import dev.nereid.api.Spelling;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashSet;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * The flags of one command, and their parser. Confined to the thread that reads the command line.
 *
 * <p>Hand-written: the class files of the usual library are too old for the JVM's AOT cache, and took a third of the
 * server's start-up time.
 */
public final class Flags {
    private static final int HELP_WIDTH = 110;
    private static final String HELP_INDENT = "      ";

    private static final String OPERANDS_ONLY = "--";

    /** The example of a flag in the help text, where a command has it. */
    private static final String EXAMPLE = "--http-port";

    private final List<Flag> all = new ArrayList<>();
    private final List<String> notices = new ArrayList<>();
    private Optional<Operands> operands = Optional.empty();
    private boolean hasLog;

    /** The arguments that are no flags. */
    private record Operands(String label, boolean repeatable, Consumer<String> setter) {}

    /** Adds a flag, named with its dashes, and a default for the help text, which has the flags in this order. */
    public <T> Flag add(String name, FlagValue<T> value, T preset, Consumer<T> setter) {
        return add(name, value, " Default: " + value.text(preset) + ".", setter);
    }

    /** Adds a flag without a default, or with one that its description explains. */
    public <T> Flag add(String name, FlagValue<T> value, Consumer<T> setter) {
        return add(name, value, "", setter);
    }

    private <T> Flag add(String name, FlagValue<T> value, String ending, Consumer<T> setter) {
        return add(new Flag(name, value.label(), ending, text -> {
            Optional<T> read = value.reader().apply(text);
            read.ifPresent(setter);
            return read.isPresent() ? Optional.empty() : Optional.of(value.expected());
        }));
    }

    public Flag toggle(String name, Runnable setter) {
        return add(new Flag(name, "", "", _ -> {
            setter.run();
            return Optional.empty();
        }));
    }

    private Flag add(Flag flag) {
        all.add(flag);
        return flag;
    }

    /** Requires one argument that is no flag. */
    public void operand(String label, Consumer<String> setter) {
        operands = Optional.of(new Operands(label, false, setter));
    }

    /** Requires one or more arguments that are no flags. */
    public void operands(String label, Consumer<String> setter) {
        operands = Optional.of(new Operands(label, true, setter));
    }

    /**
     * Reads a command line: {@code --name=value} or {@code --name value}. If a flag is repeated, the last value
     * applies; repeatable flags add each value to a list. A flag that is not on the command line is read from the
     * environment, if set and {@linkplain Flag#withoutVariable allowed}. Where operands are declared, they may be
     * between the flags; after {@code --}, everything is an operand.
     *
     * @param arguments the command line after the command
     * @throws UsageException if a flag is unknown or its value invalid
     */
    public void read(List<String> arguments, Map<String, String> environment) throws UsageException {
        Set<Flag> present = new HashSet<>();
        List<String> others = new ArrayList<>();
        for (Iterator<String> remaining = arguments.iterator(); remaining.hasNext(); ) {
            String argument = remaining.next();
            if (operands.isPresent() && argument.equals(OPERANDS_ONLY)) {
                remaining.forEachRemaining(others::add);
                break;
            }
            if (operands.isPresent() && !argument.startsWith("-")) {
                others.add(argument);
                continue;
            }
            int equal = argument.indexOf('=');
            Flag flag = find(equal < 0 ? argument : argument.substring(0, equal), argument);
            present.add(flag);
            set(flag, equal < 0 ? next(flag, remaining) : value(flag, argument.substring(equal + 1)));
        }
        if (operands.isPresent()) {
            setOperands(operands.get(), others);
        }
        for (Flag flag : all) {
            String value = environment.get(flag.variable());
            if (value != null && !present.contains(flag) && flag.hasVariable()) {
                readVariable(flag, value);
            }
        }
    }

    private void readVariable(Flag flag, String value) throws UsageException {
        if (FlagVariables.isServiceAddress(value)) {
            notices.add(FlagVariables.serviceNotice(flag.variable(), value));
        } else {
            set(flag, value);
        }
    }

    private void set(Flag flag, String value) throws UsageException {
        flag.set(value);
        if (!flag.notice().isEmpty()) {
            notices.add(flag.name() + ": " + flag.notice());
        }
    }

    /** Adds a line for each variable that looks like a flag's and is none of {@code known}, those of all commands. */
    public void checkVariables(Map<String, String> environment, Collection<String> known) {
        notices.addAll(FlagVariables.unknown(environment, known));
    }

    public Stream<String> variables() {
        return withVariable().map(Flag::variable);
    }

    private Stream<Flag> withVariable() {
        return all.stream().filter(Flag::hasVariable);
    }

    /** Returns lines about flags and variables without effect, in the order in which they were read. */
    public List<String> notices() {
        return List.copyOf(notices);
    }

    /** Says that the command writes the notices to its log, once that is set up. */
    void logNotices() {
        hasLog = true;
    }

    /** Returns whether the command writes the notices to its log. */
    public boolean hasLog() {
        return hasLog;
    }

    public String help() {
        StringBuilder text = new StringBuilder();
        for (Flag flag : all) {
            text.append("  ").append(String.join(", ", flag.names()));
            text.append(flag.isToggle() ? "" : "=" + flag.label()).append('\n');
            StringBuilder line = new StringBuilder(HELP_INDENT);
            for (String word : flag.description().split(" ", -1)) {
                if (line.length() + word.length() > HELP_WIDTH) {
                    text.append(line.toString().stripTrailing()).append('\n');
                    line = new StringBuilder(HELP_INDENT);
                }
                line.append(word).append(' ');
            }
            text.append(line.toString().stripTrailing()).append('\n');
        }
        return text.toString();
    }

    /** Returns an example of a variable, for the help text: {@code NEREID_HTTP_PORT stands for --http-port}. */
    public String variableExample() {
        Flag example = withVariable()
                .filter(flag -> flag.name().equals(EXAMPLE))
                .findFirst()
                .or(() -> withVariable().filter(flag -> flag.notice().isEmpty()).findFirst())
                .orElseThrow();
        return example.variable() + " stands for " + example.name();
    }

    private static void setOperands(Operands operands, List<String> values) throws UsageException {
        if (values.isEmpty()) {
            throw new UsageException(operands.label() + ": missing");
        }
        if (values.size() > 1 && !operands.repeatable()) {
            throw new UsageException("'" + values.get(1) + "': unexpected (expected: one " + operands.label() + ")");
        }
        values.forEach(operands.setter());
    }

    private Flag find(String name, String argument) throws UsageException {
        for (Flag flag : all) {
            if (flag.names().contains(name)) {
                return flag;
            }
        }
        throw new UsageException(
                name.startsWith("-")
                        ? name + ": unknown flag" + suggestion(name)
                        : "'" + argument + "': unexpected (expected: flags only)");
    }

    private String suggestion(String name) {
        List<String> names = all.stream().flatMap(flag -> flag.names().stream()).toList();
        return Spelling.closest(name, names)
                .map(close -> " (did you mean " + close + "?)")
                .orElse("");
    }

    private static String value(Flag flag, String value) throws UsageException {
        if (flag.isToggle()) {
            throw new UsageException(flag.name() + ": '" + value + "' (expected: no value)");
        }
        return value;
    }

    private static String next(Flag flag, Iterator<String> remaining) throws UsageException {
        if (flag.isToggle()) {
            return "";
        }
        if (!remaining.hasNext()) {
            throw new UsageException(flag.name() + ": missing (expected: " + flag.name() + "=" + flag.label() + ")");
        }
        return remaining.next();
    }
}
