package dev.nereid.grpc.testing;

import java.util.List;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import org.jspecify.annotations.Nullable;
import org.slf4j.ILoggerFactory;
import org.slf4j.IMarkerFactory;
import org.slf4j.Marker;
import org.slf4j.event.Level;
import org.slf4j.helpers.BasicMarkerFactory;
import org.slf4j.helpers.LegacyAbstractLogger;
import org.slf4j.helpers.NOPMDCAdapter;
import org.slf4j.spi.MDCAdapter;
import org.slf4j.spi.SLF4JServiceProvider;

/** The log of the tests; records causes of warnings and errors. Safe for use by any thread. */
public final class RecordedCauses implements SLF4JServiceProvider {
    private static final Queue<Throwable> CAUSES = new ConcurrentLinkedQueue<>();

    private final IMarkerFactory markers = new BasicMarkerFactory();
    private final MDCAdapter contexts = new NOPMDCAdapter();

    /** Called by SLF4J. */
    public RecordedCauses() {}

    /** Returns the causes that were logged so far, by any test. */
    public static List<Throwable> causes() {
        return List.copyOf(CAUSES);
    }

    @Override
    public ILoggerFactory getLoggerFactory() {
        return CauseLogger::new;
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
        return "2.0.99";
    }

    @Override
    public void initialize() {}

    private static final class CauseLogger extends LegacyAbstractLogger {
        private static final long serialVersionUID = 1;

        CauseLogger(String name) {
            this.name = name;
        }

        @Override
        public boolean isTraceEnabled() {
            return false;
        }

        @Override
        public boolean isDebugEnabled() {
            return false;
        }

        @Override
        public boolean isInfoEnabled() {
            return false;
        }

        @Override
        public boolean isWarnEnabled() {
            return true;
        }

        @Override
        public boolean isErrorEnabled() {
            return true;
        }

        @Override
        protected @Nullable String getFullyQualifiedCallerName() {
            return null;
        }

        @Override
        protected void handleNormalizedLoggingCall(
                Level level,
                @Nullable Marker marker,
                String message,
                @Nullable Object @Nullable [] arguments,
                @Nullable Throwable cause) {
            if (cause != null) {
                CAUSES.add(cause);
            }
        }
    }
}
