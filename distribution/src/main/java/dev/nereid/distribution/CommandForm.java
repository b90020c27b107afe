package dev.nereid.distribution;

/**
 * The texts about a command in the help. Immutable.
 *
 * @param arguments the arguments, as in {@code MODEL [FLAG]...}
 * @param description one line
 */
record CommandForm(String name, String arguments, String description, String exitCodes) {
    static final String SERVER_EXIT_CODES = """
            0 success; 1 could not start, or not stop in time; 2 wrong command line; 3 heap, metaspace or
            threads exhausted; 130 or 143 second SIGINT or SIGTERM, which end the process at once""";

    /** Returns the first line of the help text: the form of the command line. */
    String synopsis() {
        return "nereid " + name + " " + arguments;
    }
}
