package dev.nereid.backend.pytorch;

import java.util.List;
import java.util.OptionalInt;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** How the names of tensors in a configuration denote arguments and values of a module. */
enum NamingConvention {
    /** The name is that of an argument. */
    ARGUMENT,
    /** The name ends with the index: {@code NAME__INDEX}. */
    INDEX,
    /** The order of the configuration is that of the module. */
    ORDER;

    /** The first two underscores end the name; no digits count as 0. */
    private static final Pattern INDEXED = Pattern.compile("(?:(?!__).)*__(\\d*)", Pattern.DOTALL);

    private static final int MAX_DIGITS = 9;

    /**
     * Returns the convention that all names follow.
     *
     * @param arguments the names of arguments; none for outputs
     */
    static NamingConvention of(List<String> names, List<String> arguments) {
        if (!arguments.isEmpty() && arguments.containsAll(names)) {
            return ARGUMENT;
        }
        return names.stream().allMatch(name -> index(name).isPresent()) ? INDEX : ORDER;
    }

    /** Returns the index in a name; empty if the name has none. */
    static OptionalInt index(String name) {
        Matcher matcher = INDEXED.matcher(name);
        if (!matcher.matches()) {
            return OptionalInt.empty();
        }
        String digits = matcher.group(1);
        if (digits.length() > MAX_DIGITS) {
            return OptionalInt.of(Integer.MAX_VALUE); // no module has as many
        }
        return OptionalInt.of(digits.isEmpty() ? 0 : Integer.parseInt(digits));
    }
}
