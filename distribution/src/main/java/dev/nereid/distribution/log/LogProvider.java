package dev.nereid.distribution.log;

import org.slf4j.ILoggerFactory;
import org.slf4j.IMarkerFactory;
import org.slf4j.helpers.BasicMarkerFactory;
import org.slf4j.helpers.NOPMDCAdapter;
import org.slf4j.spi.MDCAdapter;
import org.slf4j.spi.SLF4JServiceProvider;

/** SLF4J service provider of the log, found by its class name. Confined to the thread that sets the log up. */
public final class LogProvider implements SLF4JServiceProvider {
    /** The version of the SLF4J API that this class implements. */
    private static final String API_VERSION = "2.0.99";

    private final LogFactory loggers = new LogFactory();
    private final IMarkerFactory markers = new BasicMarkerFactory();
    private final MDCAdapter contexts = new NOPMDCAdapter();

    /** Creates the provider; called by SLF4J. */
    public LogProvider() {}

    @Override
    public ILoggerFactory getLoggerFactory() {
        return loggers;
    }

    @Override
    public IMarkerFactory getMarkerFactory() {
        return markers;
    }

    @Override
    public MDCAdapter getMDCAdapter() {
        return contexts;
    }

    @Override
    public String getRequestedApiVersion() {
        return API_VERSION;
    }

    @Override
    public void initialize() {}
}
