package dev.nereid.distribution.report;

/** Builds a shell command line from literal text and command output. Confined to one thread. */
final class ShellText {
    private final StringBuilder commands = new StringBuilder();
    private final StringBuilder words = new StringBuilder();

    void text(String text) {
        words.append(text);
    }

    void output(String command) {
        commands.append(printed()).append("; ").append(command).append("; ");
        words.setLength(0);
    }

    /** Returns the command line that passes the text to curl. The text is the body of a request. */
    String sentTo(String curl) {
        if (commands.isEmpty()) {
            return curl + " -d " + quoted();
        }
        return "{ " + commands + printed() + "; } | " + curl + " -d @-";
    }

    private String printed() {
        return "printf %s " + quoted();
    }

    private String quoted() {
        return "'" + words.toString().replace("'", "'\\''") + "'";
    }
}
