package dev.nereid.backend.python.execute;

import java.text.MessageFormat;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.logging.Handler;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** The lines that a server in this process logs, as {@code LEVEL text}. */
public final class RecordedLog extends Handler {
    private static final Logger ROOT = Logger.getLogger("");

    private final List<String> lines = new CopyOnWriteArrayList<>();

    private RecordedLog() {}

    /** Begins to record. */
    static RecordedLog begin() {
        RecordedLog log = new RecordedLog();
        ROOT.addHandler(log);
        return log;
    }

    /** Returns the lines so far. */
    public List<String> lines() {
        return List.copyOf(lines);
    }

    /** Returns the lines so far that contain a text. */
    public List<String> lines(String text) {
        return lines.stream().filter(line -> line.contains(text)).toList();
    }

    @Override
    public void publish(LogRecord line) {
        Object[] values = line.getParameters();
        String text = values == null || values.length == 0
                ? line.getMessage()
                : MessageFormat.format(line.getMessage(), values);
        lines.add(line.getLevel() + " " + text);
    }

    @Override
    public void flush() {}

    @Override
    public void close() {
        ROOT.removeHandler(this);
    }
}
