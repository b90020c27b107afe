package dev.nereid.backend.pytorch;

import java.util.List;
import java.util.OptionalInt;

/** How the names of tensors in a configuration denote arguments and values of a module. */
enum NamingConvention {
    /** The name is that of an argument. */
    ARGUMENT,
    /** The name ends with the index: {@code NAME__INDEX}. */
    INDEX,
    /** The order of the configuration is that of the module. */
    ORDER;

    private static final String SEPARATOR = "__";
    private static final int MAX_DIGITS = 9;

    /** Returns the convention that all names follow. For outputs there are no arguments. */
    static NamingConvention of(List<String> names, List<String> arguments) {
        if (!arguments.isEmpty() && arguments.containsAll(names)) {
            return ARGUMENT;
        }
        return names.stream().allMatch(name -> index(name).isPresent()) ? INDEX : ORDER;
    }

    /** Returns the index in a name, behind its first two underscores, where no digits are 0; empty if it has none. */
    static OptionalInt index(String name) {
        int end = name.indexOf(SEPARATOR);
        if (end < 0) {
            return OptionalInt.empty();
        }
        int first = end + SEPARATOR.length();
        for (int i = first; i < name.length(); i++) {
            if (name.charAt(i) < '0' || name.charAt(i) > '9') {
                return OptionalInt.empty();
            }
        }
        while (first < name.length() && name.charAt(first) == '0') {
            first++;
        }
        if (name.length() - first > MAX_DIGITS) {
            return OptionalInt.of(Integer.MAX_VALUE); // no module has as many
        }
        return OptionalInt.of(first == name.length() ? 0 : Integer.parseInt(name.substring(first)));
    }
}
