package dev.nereid.distribution.log;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.slf4j.Marker;
import org.slf4j.event.KeyValuePair;
import org.slf4j.event.Level;
import org.slf4j.event.LoggingEvent;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.spi.LoggingEventAware;

/** An SLF4J logger that filters events by level and writes them as lines. Safe for use by any thread. */
final class LineLogger extends LegacyAbstractLogger implements LoggingEventAware {
    private static final long serialVersionUID = 1L;

    private final transient LogLines lines;
    private volatile int level;

    LineLogger(String name, int level, LogLines lines) {
        this.name = name;
        this.level = level;
        this.lines = lines;
    }

    void setLevel(int changed) {
        level = changed;
    }

    @Override
    public void log(LoggingEvent event) {
        if (!isWritten(event.getLevel(), event.getThrowable())) {
            return;
        }
        Object[] arguments = event.getArgumentArray();
        List<KeyValuePair> pairs = event.getKeyValuePairs();
        lines.write(
                getName(),
                event.getLevel(),
                pairs == null ? List.of() : pairs,
                event.getMessage(),
                arguments,
                event.getThrowable());
    }

    /** Returns whether the event is to be written. Checks for a fatal error first, which allocates nothing. */
    private boolean isWritten(Level severity, @Nullable Throwable thrown) {
        lines.check(thrown);
        return level <= severity.toInt();
    }

    @Override
    protected void handleNormalizedLoggingCall(
            Level severity,
            @Nullable Marker marker,
            @Nullable String pattern,
            Object @Nullable [] arguments,
            @Nullable Throwable thrown) {
        if (!isWritten(severity, thrown)) {
            return;
        }
        lines.write(getName(), severity, List.of(), pattern, arguments, thrown);
    }

    @Override
    protected @Nullable String getFullyQualifiedCallerName() {
        return null;
    }

    @Override
    public boolean isTraceEnabled() {
        return level <= Level.TRACE.toInt();
    }

    @Override
    public boolean isDebugEnabled() {
        return level <= Level.DEBUG.toInt();
    }

    @Override
    public boolean isInfoEnabled() {
        return level <= Level.INFO.toInt();
    }

    /** Returns {@code true} even if warnings are not written: their causes are checked for fatal errors. */
    @Override
    public boolean isWarnEnabled() {
        return true;
    }

    @Override
    public boolean isErrorEnabled() {
        return true;
    }
}
