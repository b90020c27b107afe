package dev.nereid.grpc;

import dev.nereid.api.FatalErrorHandler;
import java.util.List;
import java.util.concurrent.TimeUnit;
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
 * Limits each logger of the gRPC transport to one line a second. Safe for use by any thread.
 *
 * <p>The transport logs each error of a client with a stack trace, which would let a client fill the disk and keep the
 * event loop busy. A line has no stack trace, and has the number of lines suppressed before it.
 */
final class TransportLogFilter implements Filter {
    private static final org.slf4j.Logger LOG = LoggerFactory.getLogger(TransportLogFilter.class);
    private static final long INTERVAL_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The loggers of the transport. A filter applies to its own logger alone, so each is named. */
    private static final List<String> LOGGER_NAMES = List.of(
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

    /** The loggers. The JVM forgets loggers without a strong reference, and their filters with them. */
    private static final List<Logger> LOGGERS =
            LOGGER_NAMES.stream().map(Logger::getLogger).toList();

    private final LongSupplier nanoTime;
    /** When the next line may be written. */
    private final AtomicLong nextLineNanos;
    /** The lines suppressed since the last one. */
    private final AtomicLong suppressed = new AtomicLong();

    TransportLogFilter(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
        nextLineNanos = new AtomicLong(nanoTime.getAsLong());
    }

    static void install() {
        LOGGERS.forEach(logger -> logger.setFilter(new TransportLogFilter(System::nanoTime)));
    }

    /**
     * Writes a record if the interval has passed. Returns {@code false}, so that the handlers of the logger do not
     * write it too, unless it has an error of the JVM: clients do not cause such errors, and handlers look for fatal
     * ones.
     */
    @Override
    public boolean isLoggable(LogRecord message) {
        if (message.getLevel().intValue() < Level.INFO.intValue()) {
            return false;
        }
        @Nullable Throwable thrown = message.getThrown();
        if (thrown instanceof Error || FatalErrorHandler.find(thrown) != null) {
            return true;
        }
        long now = nanoTime.getAsLong();
        long nextLine = nextLineNanos.get();
        if (now - nextLine < 0 || !nextLineNanos.compareAndSet(nextLine, now + INTERVAL_NANOS)) {
            suppressed.incrementAndGet();
            return false;
        }
        write(message, thrown, suppressed.getAndSet(0));
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
