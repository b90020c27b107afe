package dev.nereid.api.tls;

import static java.util.Objects.requireNonNull;

import java.io.IOException;
import java.security.GeneralSecurityException;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Rereads TLS files and passes changed credentials to a listener. Safe for use by any thread.
 *
 * <p>Files that cannot be used change nothing: the credentials before stay in use, and the next check reads the files
 * again. One check is in progress at a time; it alone uses the fields that are not final.
 */
public final class TlsReloader {
    private static final Logger LOG = LoggerFactory.getLogger(TlsReloader.class);

    private final String protocol;
    private final Executor blocking;
    private final Listener listener;
    private final AtomicBoolean isChecking = new AtomicBoolean();
    private TlsCredentials used;
    /** The problem that was logged last: each is logged once, not at every check. */
    private String lastProblem = "";

    /** Puts changed credentials into use. */
    @FunctionalInterface
    public interface Listener {
        /**
         * Uses other credentials for new connections. Called on a thread of the reloader's executor, never by two
         * threads at once; may block.
         *
         * @param credentials the credentials
         * @return completed when new connections use them
         * @throws GeneralSecurityException if they cannot be used
         * @throws IOException if they cannot be used
         */
        CompletionStage<?> onReload(TlsCredentials credentials) throws GeneralSecurityException, IOException;
    }

    /**
     * Creates a reloader.
     *
     * @param protocol the name of the protocol for logs
     * @param used the credentials in use
     * @param blocking the executor that reads files
     * @param listener receives changed credentials
     */
    public TlsReloader(String protocol, TlsCredentials used, Executor blocking, Listener listener) {
        this.protocol = requireNonNull(protocol, "protocol");
        this.used = requireNonNull(used, "used");
        this.blocking = requireNonNull(blocking, "blocking");
        this.listener = requireNonNull(listener, "listener");
    }

    /** Starts a check of the files on the executor, unless one is in progress. Does not block. */
    public void check() {
        if (isChecking.compareAndSet(false, true)) {
            try {
                blocking.execute(this::reload);
            } catch (RejectedExecutionException e) { // the server stops
                isChecking.set(false);
            } catch (RuntimeException | Error e) { // such as no memory for a thread
                failed(e);
            }
        }
    }

    private void reload() {
        try {
            Optional<TlsCredentials> changed = used.readChanges();
            if (changed.isEmpty()) {
                lastProblem = "";
                isChecking.set(false);
                return;
            }
            listener.onReload(changed.get()).whenComplete((_, problem) -> reloaded(changed.get(), problem));
        } catch (IOException
                | GeneralSecurityException
                | RuntimeException
                | Error e) { // such as no memory to read files
            failed(e);
        }
    }

    /** Logs a failed check, and allows the next one. */
    private void failed(Throwable problem) {
        try {
            logProblem(problem);
        } finally {
            isChecking.set(false);
        }
    }

    private void reloaded(TlsCredentials credentials, @Nullable Throwable problem) {
        if (problem != null) {
            failed(problem);
            return;
        }
        used = credentials;
        lastProblem = "";
        try {
            LOG.atInfo()
                    .addKeyValue("protocol", protocol)
                    .addKeyValue("certificate", credentials.files().certificate())
                    .log("certificates replaced");
        } finally {
            isChecking.set(false);
        }
    }

    private void logProblem(Throwable problem) {
        String reason = String.valueOf(problem.getMessage());
        if (!reason.equals(lastProblem)) {
            lastProblem = reason;
            LOG.atWarn()
                    .addKeyValue("protocol", protocol)
                    .addKeyValue("certificate", used.files().certificate())
                    .addKeyValue("reason", reason)
                    .log("certificates not replaced, the old ones stay in use");
        }
    }
}
