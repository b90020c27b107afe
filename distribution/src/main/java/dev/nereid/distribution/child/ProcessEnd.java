package dev.nereid.distribution.child;

import dev.nereid.distribution.process.ExitStatus;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The end of a child process without a report. Immutable.
 *
 * @param status the exit status, as {@link Process#exitValue()} returns it
 * @param fatalError what the JVM says about a fatal error; empty for nothing
 */
record ProcessEnd(int status, String fatalError) {
    private static final Pattern SIGNAL = Pattern.compile("(?m)^# +(SIG[A-Z]+) \\(0x([0-9a-f]+)\\)");
    private static final Pattern FRAME = Pattern.compile("(?m)^# Problematic frame:\\R# (?:[A-Za-z] +)?(.+)$");
    private static final Pattern ALLOCATION = Pattern.compile("(?m)^# (Native memory allocation .+)$");
    private static final Pattern INTERNAL = Pattern.compile("(?m)^# +(Internal Error .+?), pid=");
    private static final int HEXADECIMAL = 16;
    private static final int KILL = 9;
    private static final Map<Integer, String> NAMES = Map.of(
            4, "SIGILL", 5, "SIGTRAP", 6, "SIGABRT", 7, "SIGBUS", 8, "SIGFPE", KILL, "SIGKILL", 11, "SIGSEGV", 15,
            "SIGTERM", 24, "SIGXCPU", 31, "SIGSYS");

    /** Returns how the process ended, as in "signal 11, SIGSEGV, in [libc.so.6+0x1] strlen". */
    String text() {
        Matcher signal = SIGNAL.matcher(fatalError);
        Matcher frame = FRAME.matcher(fatalError);
        String where = frame.find() ? ", in " + frame.group(1).strip() : "";
        if (signal.find()) {
            return "signal " + Integer.parseInt(signal.group(2), HEXADECIMAL) + ", " + signal.group(1) + where;
        }
        Matcher allocation = ALLOCATION.matcher(fatalError);
        if (allocation.find()) {
            return "out of memory: " + allocation.group(1).strip();
        }
        Matcher internal = INTERNAL.matcher(fatalError);
        if (internal.find()) {
            return internal.group(1) + where;
        }
        return ofStatus();
    }

    private String ofStatus() {
        int signal = status - ExitStatus.SIGNAL;
        if (signal == KILL) {
            return "signal 9, SIGKILL, perhaps for lack of memory";
        }
        if (signal > 0) {
            return "signal " + signal + (NAMES.containsKey(signal) ? ", " + NAMES.get(signal) : "");
        }
        return status == ExitStatus.OUT_OF_MEMORY
                ? "exit status " + status + ", out of memory"
                : "exit status " + status;
    }
}
