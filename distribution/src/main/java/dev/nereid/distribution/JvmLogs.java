package dev.nereid.distribution;

import dev.nereid.api.FatalErrorHandler;
import java.util.List;
import java.util.function.ObjIntConsumer;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Reads what the JDK and gRPC write to the log of the JDK: calls of {@link System#exit}, and fatal errors that gRPC
 * caught. Immutable; to be kept as long as it is to read.
 */
final class JvmLogs {
    private static final Pattern STATUS = Pattern.compile("(-?\\d+)\\)?$");

    /** Referred to from here, since the JDK drops loggers that nobody refers to. */
    private final List<Logger> loggers;

    /**
     * Begins to read.
     *
     * @param exits is told the stack and the status of each call of {@link System#exit}, on the thread that calls it
     * @param fatalErrors is told of errors that gRPC caught
     */
    JvmLogs(ObjIntConsumer<Throwable> exits, FatalErrorHandler fatalErrors) {
        Logger exit = Logger.getLogger("java.lang.Runtime");
        exit.setLevel(Level.FINE);
        exit.setUseParentHandlers(false);
        exit.addHandler(new Reader() {
            @Override
            public void publish(LogRecord event) {
                Matcher status = STATUS.matcher(event.getMessage());
                if (event.getThrown() != null && status.find()) {
                    exits.accept(event.getThrown(), Integer.parseInt(status.group(1)));
                }
            }
        });
        Logger grpc = Logger.getLogger("io.grpc");
        grpc.addHandler(new Reader() {
            @Override
            public void publish(LogRecord event) {
                fatalErrors.check(event.getThrown());
            }
        });
        loggers = List.of(exit, grpc);
    }

    /** Returns the names of what is read. */
    List<String> names() {
        return loggers.stream().map(Logger::getName).toList();
    }

    /** Reads the events of a log, and keeps none. */
    private abstract static class Reader extends Handler {
        @Override
        public void flush() {}

        @Override
        public void close() {}
    }
}
