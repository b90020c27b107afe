package dev.nereid.http.tls;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.net.ServerSSLOptions;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reloads TLS files periodically and updates the listeners. Connections that are open stay as they are. Files that
 * cannot be used change nothing.
 *
 * <p>One look at a time: whoever looks owns the fields.
 */
public final class CertificateWatch implements AutoCloseable {
    private static final Logger log = LoggerFactory.getLogger(CertificateWatch.class);

    private final Vertx vertx;
    private final Function<ServerSSLOptions, Future<?>> listeners;
    private final AtomicBoolean isChecking = new AtomicBoolean();
    private final long timer;
    private Certificates used;
    /** What was last wrong with the files: told once, not at every look. */
    private String lastProblem = "";

    /**
     * Begins to look.
     *
     * @param vertx whose worker threads read the files
     * @param used what the listeners use now
     * @param listeners updates all listeners, and completes when that is done
     */
    public CertificateWatch(Vertx vertx, Certificates used, Function<ServerSSLOptions, Future<?>> listeners) {
        this.vertx = vertx;
        this.used = used;
        this.listeners = listeners;
        this.timer = vertx.setPeriodic(used.files().checkInterval().toMillis(), now -> check());
    }

    private void check() {
        if (isChecking.compareAndSet(false, true)) {
            vertx.executeBlocking(() -> Certificates.read(used.files(), vertx))
                    .compose(this::apply)
                    .onFailure(this::logProblem)
                    .onComplete(done -> isChecking.set(false));
        }
    }

    private Future<?> apply(Certificates read) {
        lastProblem = "";
        if (read.isSame(used)) {
            return Future.succeededFuture();
        }
        return listeners.apply(read.options()).onSuccess(done -> {
            used = read;
            log.atInfo().addKeyValue("file", read.files().certificate()).log("certificates of http replaced");
        });
    }

    private void logProblem(Throwable problem) {
        String text = String.valueOf(problem.getMessage());
        if (!text.equals(lastProblem)) {
            lastProblem = text;
            log.atWarn().addKeyValue("problem", text).log("new certificates of http not used, old ones kept");
        }
    }

    @Override
    public void close() {
        vertx.cancelTimer(timer);
    }
}
