package dev.nereid.backend.python.process;

import java.util.List;

/**
 * How a process ended.
 *
 * @param status the status as the JDK has it: the program's, or 128 and the number of the signal; -1 if it never ran
 * @param reason why the server ended it, or why it did not start; empty if it ended on its own
 */
public record WorkerEnd(int status, String reason, List<String> lastLines) {
    private static final int SIGNALS = 128;
    private static final int LAST_SIGNAL = 64;
    private static final int KILL = 9;

    public WorkerEnd {
        lastLines = List.copyOf(lastLines);
    }

    /** Returns exit code or signal, and the reason, in one sentence. */
    public String describe() {
        String how = status < 0
                ? "The process did not start"
                : status == SIGNALS + KILL && !reason.isEmpty()
                        ? "The process was killed"
                        : status > SIGNALS && status <= SIGNALS + LAST_SIGNAL
                                ? "The process was ended by signal " + signal(status - SIGNALS)
                                : "The process ended with exit code " + status;
        return how + (reason.isEmpty() ? "." : ": " + reason + (reason.endsWith(".") ? "" : "."));
    }

    private static String signal(int number) {
        return switch (number) {
            case 1 -> "1 (SIGHUP)";
            case 2 -> "2 (SIGINT)";
            case 3 -> "3 (SIGQUIT)";
            case 4 -> "4 (SIGILL)";
            case 6 -> "6 (SIGABRT)";
            case 7 -> "7 (SIGBUS)";
            case 8 -> "8 (SIGFPE)";
            case 9 -> "9 (SIGKILL, as when memory runs out)";
            case 11 -> "11 (SIGSEGV)";
            case 13 -> "13 (SIGPIPE)";
            case 14 -> "14 (SIGALRM)";
            case 15 -> "15 (SIGTERM)";
            case 24 -> "24 (SIGXCPU: its limit of processor time)";
            default -> Integer.toString(number);
        };
    }
}
