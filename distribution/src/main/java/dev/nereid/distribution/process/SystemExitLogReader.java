package dev.nereid.distribution.process;

import java.util.function.ObjIntConsumer;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads invocations of {@link System#exit} from the log of the JDK. Immutable; reads as long as it is reachable.
 *
 * <p>The JDK does not log {@link Runtime#halt}: such an end of the process is not seen here.
 */
public final class SystemExitLogReader {
    private static final Pattern STATUS = Pattern.compile("(-?\\d+)\\)?$");

    /** Strongly referenced, since the JDK drops loggers without references. */
    private final Logger logger = Logger.getLogger("java.lang.Runtime");

    /** Starts reading. {@code exits} receives stack and status of each invocation, on the invoking thread. */
    public SystemExitLogReader(ObjIntConsumer<Throwable> exits) {
        logger.setLevel(Level.FINE);
        logger.setUseParentHandlers(false);
        logger.addHandler(new Reader(exits));
    }

    /** Passes log records on to a listener and stores none. */
    private static final class Reader extends Handler {
        private final ObjIntConsumer<Throwable> exits;

        Reader(ObjIntConsumer<Throwable> exits) {
            this.exits = exits;
        }

        @Override
        public void publish(LogRecord event) {
            Matcher status = STATUS.matcher(event.getMessage());
            if (event.getThrown() != null && status.find()) {
                exits.accept(event.getThrown(), Integer.parseInt(status.group(1)));
            }
        }

        @Override
        public void flush() {}

        @Override
        public void close() {}
    }
}
