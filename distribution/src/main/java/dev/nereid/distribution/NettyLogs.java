package dev.nereid.distribution;

import dev.nereid.api.FatalErrorHandler;
import io.netty.util.internal.logging.InternalLogger;
import io.netty.util.internal.logging.InternalLoggerFactory;
import io.netty.util.internal.logging.Slf4JLoggerFactory;

/** Makes the loggers of Netty. Immutable. */
final class NettyLogs extends InternalLoggerFactory {
    private final Slf4JLoggerFactory factory = (Slf4JLoggerFactory) Slf4JLoggerFactory.INSTANCE;
    private final FatalErrorHandler fatalErrors;

    /** Has fatal errors reported that Netty logs. */
    NettyLogs(FatalErrorHandler fatalErrors) {
        this.fatalErrors = fatalErrors;
    }

    @Override
    public InternalLogger newInstance(String name) {
        return new NettyLogger(factory.newInstance(name), fatalErrors);
    }
}
