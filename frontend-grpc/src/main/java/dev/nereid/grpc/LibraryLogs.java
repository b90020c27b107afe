package dev.nereid.grpc;

import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongSupplier;
import java.util.logging.Filter;
import java.util.logging.Level;
import java.util.logging.LogRecord;
import java.util.logging.Logger;
import org.jspecify.annotations.Nullable;
import org.slf4j.LoggerFactory;
import org.slf4j.spi.LoggingEventBuilder;

/**
 * Logs what the transport logs, one line a second for each cause at most. Safe for use by any thread.
 *
 * <p>The transport reports what clients do wrong with a stack trace each, which would let a client fill the disk and keep
 * the event loop busy. Each cause is logged without its stack, and with the number of those left out before.
 */
final class LibraryLogs implements Filter {
    private static final org.slf4j.Logger LOG = LoggerFactory.getLogger(LibraryLogs.class);
    private static final long INTERVAL_NANOS = 1_000_000_000;
    private static final int MAX_CAUSES = 256;
    private static final int MAX_TEXT = 256;

    /** The loggers of the transport. A filter is asked only by its own logger, so each has to be named. */
    private static final List<String> NAMES = List.of(
            "io.grpc.netty.NettyServerHandler",
            "io.grpc.netty.NettyServerStream",
            "io.grpc.netty.NettyServerTransport",
            "io.grpc.netty.NettyServerTransport.connections",
            "io.grpc.netty.WriteBufferingAndExceptionHandler",
            "io.grpc.netty.ProtocolNegotiators",
            "io.grpc.internal.ServerImpl",
            "io.grpc.internal.ServerCallImpl",
            "io.grpc.internal.SerializingExecutor",
            "io.grpc.internal.SerializeReentrantCallsDirectExecutor",
            "io.grpc.internal.AbstractServerStream",
            "io.grpc.internal.AbstractStream",
            "io.grpc.internal.MessageDeframer",
            "io.grpc.internal.GrpcUtil");

    /** The loggers, which the JVM forgets, and their filters with them, unless somebody holds them. */
    private static final List<Logger> LOGGERS =
            NAMES.stream().map(Logger::getLogger).toList();

    private final LongSupplier nanoTime;
    private final Map<String, Cause> causes = new ConcurrentHashMap<>();

    LibraryLogs(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    /** When a cause may be logged again, and how often it was not since the last time. */
    private static final class Cause {
        private final AtomicLong next;
        private final AtomicLong left = new AtomicLong();

        Cause(long now) {
            next = new AtomicLong(now);
        }
    }

    /** Has the loggers of the transport ask a filter. */
    static void install() {
        LibraryLogs filter = new LibraryLogs(System::nanoTime);
        LOGGERS.forEach(logger -> logger.setFilter(filter));
    }

    /** Logs a record here if it is worth it. Returns false: nobody else is to log it, unless it is an error of the JVM. */
    @Override
    public boolean isLoggable(LogRecord message) {
        if (message.getLevel().intValue() < Level.INFO.intValue()) {
            return false;
        }
        @Nullable Throwable thrown = message.getThrown();
        if (thrown instanceof Error) {
            return true; // no fault of a client: for the handlers that look for fatal errors
        }
        String text = String.valueOf(message.getMessage());
        String key = text.substring(0, Math.min(text.length(), MAX_TEXT));
        if (thrown != null) {
            key += thrown.getClass().getName();
        }
        long now = nanoTime.getAsLong();
        Cause cause = causes.size() < MAX_CAUSES
                ? causes.computeIfAbsent(key, _ -> new Cause(now))
                : causes.getOrDefault(key, causes.computeIfAbsent("", _ -> new Cause(now)));
        long next = cause.next.get();
        if (now - next < 0 || !cause.next.compareAndSet(next, now + INTERVAL_NANOS)) {
            cause.left.incrementAndGet();
            return false;
        }
        write(message, thrown, cause.left.getAndSet(0));
        return false;
    }

    private static void write(LogRecord message, @Nullable Throwable thrown, long left) {
        boolean isWarning = message.getLevel().intValue() >= Level.WARNING.intValue();
        LoggingEventBuilder event =
                (isWarning ? LOG.atWarn() : LOG.atInfo()).addKeyValue("logger", message.getLoggerName());
        if (thrown != null) {
            event = event.addKeyValue("cause", thrown.toString());
        }
        if (left > 0) {
            event = event.addKeyValue("more", left);
        }
        event.log(String.valueOf(message.getMessage()));
    }
}
