package dev.nereid.distribution;

import dev.nereid.api.FatalErrorHandler;
import io.netty.util.internal.logging.AbstractInternalLogger;
import io.netty.util.internal.logging.InternalLogger;
import org.jspecify.annotations.Nullable;

/**
 * A logger of Netty whose events are read for fatal errors: event loops catch whatever their tasks throw, and do nothing
 * but log it. As thread-safe as the logger behind it.
 */
@SuppressWarnings("serial") // never serialized
final class NettyLogger extends AbstractInternalLogger {
    private static final long serialVersionUID = 1;

    private final InternalLogger logger;
    private final FatalErrorHandler fatalErrors;

    NettyLogger(InternalLogger logger, FatalErrorHandler fatalErrors) {
        super(logger.name());
        this.logger = logger;
        this.fatalErrors = fatalErrors;
    }

    private void check(@Nullable Object last) {
        if (last instanceof Throwable thrown) {
            fatalErrors.check(thrown);
        }
    }

    @Override
    public boolean isTraceEnabled() {
        return logger.isTraceEnabled();
    }

    @Override
    public void trace(String text) {
        logger.trace(text);
    }

    @Override
    public void trace(String format, Object argument) {
        check(argument);
        logger.trace(format, argument);
    }

    @Override
    public void trace(String format, Object first, Object second) {
        check(second);
        logger.trace(format, first, second);
    }

    @Override
    public void trace(String format, Object... arguments) {
        check(arguments.length == 0 ? null : arguments[arguments.length - 1]);
        logger.trace(format, arguments);
    }

    @Override
    public void trace(String text, Throwable thrown) {
        check(thrown);
        logger.trace(text, thrown);
    }

    @Override
    public boolean isDebugEnabled() {
        return logger.isDebugEnabled();
    }

    @Override
    public void debug(String text) {
        logger.debug(text);
    }

    @Override
    public void debug(String format, Object argument) {
        check(argument);
        logger.debug(format, argument);
    }

    @Override
    public void debug(String format, Object first, Object second) {
        check(second);
        logger.debug(format, first, second);
    }

    @Override
    public void debug(String format, Object... arguments) {
        check(arguments.length == 0 ? null : arguments[arguments.length - 1]);
        logger.debug(format, arguments);
    }

    @Override
    public void debug(String text, Throwable thrown) {
        check(thrown);
        logger.debug(text, thrown);
    }

    @Override
    public boolean isInfoEnabled() {
        return logger.isInfoEnabled();
    }

    @Override
    public void info(String text) {
        logger.info(text);
    }

    @Override
    public void info(String format, Object argument) {
        check(argument);
        logger.info(format, argument);
    }

    @Override
    public void info(String format, Object first, Object second) {
        check(second);
        logger.info(format, first, second);
    }

    @Override
    public void info(String format, Object... arguments) {
        check(arguments.length == 0 ? null : arguments[arguments.length - 1]);
        logger.info(format, arguments);
    }

    @Override
    public void info(String text, Throwable thrown) {
        check(thrown);
        logger.info(text, thrown);
    }

    @Override
    public boolean isWarnEnabled() {
        return logger.isWarnEnabled();
    }

    @Override
    public void warn(String text) {
        logger.warn(text);
    }

    @Override
    public void warn(String format, Object argument) {
        check(argument);
        logger.warn(format, argument);
    }

    @Override
    public void warn(String format, Object first, Object second) {
        check(second);
        logger.warn(format, first, second);
    }

    @Override
    public void warn(String format, Object... arguments) {
        check(arguments.length == 0 ? null : arguments[arguments.length - 1]);
        logger.warn(format, arguments);
    }

    @Override
    public void warn(String text, Throwable thrown) {
        check(thrown);
        logger.warn(text, thrown);
    }

    @Override
    public boolean isErrorEnabled() {
        return logger.isErrorEnabled();
    }

    @Override
    public void error(String text) {
        logger.error(text);
    }

    @Override
    public void error(String format, Object argument) {
        check(argument);
        logger.error(format, argument);
    }

    @Override
    public void error(String format, Object first, Object second) {
        check(second);
        logger.error(format, first, second);
    }

    @Override
    public void error(String format, Object... arguments) {
        check(arguments.length == 0 ? null : arguments[arguments.length - 1]);
        logger.error(format, arguments);
    }

    @Override
    public void error(String text, Throwable thrown) {
        check(thrown);
        logger.error(text, thrown);
    }
}
