package dev.nereid.distribution.log;

import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.Set;

/** Formats a throwable and its causes as the JDK does, with escaped messages. Static functions only. */
final class LogTrace {
    private static final int MAX_MESSAGE_LENGTH = 4096;

    /** Maximum frames of each throwable; a StackOverflowError has a thousand. */
    private static final int MAX_FRAMES = 100;

    /** Maximum causes and suppressed exceptions. */
    private static final int MAX_DEPTH = 20;

    private LogTrace() {}

    static void append(StringBuilder lines, Throwable thrown) {
        append(lines, thrown, "", "", new StackTraceElement[0], Collections.newSetFromMap(new IdentityHashMap<>()));
    }

    private static void append(
            StringBuilder lines,
            Throwable thrown,
            String indent,
            String caption,
            StackTraceElement[] enclosing,
            Set<Throwable> seen) {
        lines.append(indent).append(caption);
        LogText.append(lines, LogText.of(thrown), MAX_MESSAGE_LENGTH);
        if (!seen.add(thrown) || seen.size() > MAX_DEPTH) {
            lines.append(" (more omitted)\n");
            return;
        }
        lines.append('\n');
        StackTraceElement[] frames = thrown.getStackTrace();
        int own = frames.length;
        for (int outer = enclosing.length; own > 0 && outer > 0 && frames[own - 1].equals(enclosing[outer - 1]); ) {
            own--;
            outer--;
        }
        int written = Math.min(own, MAX_FRAMES);
        for (int i = 0; i < written; i++) {
            lines.append(indent).append("\tat ");
            LogText.append(lines, frames[i].toString(), MAX_MESSAGE_LENGTH);
            lines.append('\n');
        }
        if (frames.length > written) {
            lines.append(indent)
                    .append("\t... ")
                    .append(frames.length - written)
                    .append(" more\n");
        }
        for (Throwable suppressed : thrown.getSuppressed()) {
            append(lines, suppressed, indent + "\t", "Suppressed: ", frames, seen);
        }
        Throwable cause = thrown.getCause();
        if (cause != null) {
            append(lines, cause, indent, "Caused by: ", frames, seen);
        }
    }
}
