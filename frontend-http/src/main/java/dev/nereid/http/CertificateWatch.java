package dev.nereid.http;

import io.vertx.core.Future;
import io.vertx.core.Vertx;
import io.vertx.core.net.ServerSSLOptions;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Looks at the files of certificates from time to time, and has listeners use what is new in them. Connections that are
 * open stay as they are. Files that cannot be used change nothing.
 *
 * <p>One look at a time: whoever looks owns the fields.
 */
final class CertificateWatch implements AutoCloseable {
    private static final Logger log = LoggerFactory.getLogger(CertificateWatch.class);

    private final Vertx vertx;
    private final Function<ServerSSLOptions, Future<?>> listeners;
    private final AtomicBoolean isLooking = new AtomicBoolean();
    private final long timer;
    private Certificates used;
    /** What was last wrong with the files: told once, not at every look. */
    private String complaint = "";

    /**
     * Begins to look.
     *
     * @param vertx whose worker threads read the files
     * @param used what the listeners use now
     * @param listeners updates all listeners, and completes when that is done
     */
    CertificateWatch(Vertx vertx, Certificates used, Function<ServerSSLOptions, Future<?>> listeners) {
        this.vertx = vertx;
        this.used = used;
        this.listeners = listeners;
        this.timer = vertx.setPeriodic(used.files().checkInterval().toMillis(), now -> look());
    }

    private void look() {
        if (isLooking.compareAndSet(false, true)) {
            vertx.executeBlocking(() -> Certificates.read(used.files(), vertx))
                    .compose(this::use)
                    .onFailure(this::complain)
                    .onComplete(done -> isLooking.set(false));
        }
    }

    private Future<?> use(Certificates read) {
        complaint = "";
        if (read.isSame(used)) {
            return Future.succeededFuture();
        }
        return listeners.apply(read.options()).onSuccess(done -> {
            used = read;
            log.atInfo().addKeyValue("file", read.files().certificate()).log("certificates of http replaced");
        });
    }

    private void complain(Throwable problem) {
        String text = String.valueOf(problem.getMessage());
        if (!text.equals(complaint)) {
            complaint = text;
            log.atWarn().addKeyValue("problem", text).log("new certificates of http not used, old ones kept");
        }
    }

    @Override
    public void close() {
        vertx.cancelTimer(timer);
    }
}
