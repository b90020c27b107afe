package dev.nereid.distribution.child;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.distribution.process.ParentPipe;
import dev.nereid.server.lifecycle.ModelLoadOptions.LoadObserver;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.json.JsonObject;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Supplier;

/**
 * A check in a child process: reports to the parent which model is completed or loaded, before a library can end the
 * process. Safe for use by any thread.
 */
public final class ChildCheck implements LoadObserver {
    private static final int MAX_NAME = 200;

    private final ParentPipe parent;
    private final PrintStream out;
    private final CheckOrder order;
    private final AtomicLong numbers = new AtomicLong();
    private final ReentrantLock lock = new ReentrantLock();

    private ChildCheck(ParentPipe parent, PrintStream out, CheckOrder order) {
        this.parent = parent;
        this.out = out;
        this.order = order;
    }

    /** Waits for the order of the parent, to which the standard output is a pipe. */
    public static ChildCheck start(ParentPipe parent, PrintStream out) throws InterruptedException {
        return new ChildCheck(parent, out, CheckOrder.of(parent.readLine()));
    }

    /** Returns the options of the check, as the parent has ordered. */
    public ServerOptions apply(ServerOptions options) {
        return options.with(changed -> {
            changed.loadThreads = order.oneByOne() ? 1 : changed.loadThreads;
            changed.observer = this;
        });
    }

    @Override
    public <T> T observe(String model, String backend, Work work, Supplier<T> execution) {
        String reason = order.refused().getOrDefault(model, order.rest());
        if (!reason.isEmpty()) {
            throw new BackendException(ErrorCode.INTERNAL, reason);
        }
        long number = numbers.incrementAndGet();
        // A configuration may have a backend of any length; a message has to fit in what a pipe takes at once.
        send(new JsonObject()
                .put(CheckOrder.BEGIN, model)
                .put(CheckOrder.NUMBER, number)
                .put(CheckOrder.BACKEND, backend.length() > MAX_NAME ? backend.substring(0, MAX_NAME) + "…" : backend)
                .put(CheckOrder.WORK, work.name()));
        try {
            T result = execution.get();
            end(number);
            return result;
        } catch (RuntimeException | Error e) {
            if (FatalErrorHandler.find(e) == null) { // else the process ends in this work
                end(number);
            }
            throw e;
        }
    }

    private void end(long number) {
        send(new JsonObject().put(CheckOrder.END, number));
    }

    /** Reports that all models are checked, and waits for the parent's decision whether the report is to be printed. */
    public boolean isReportWanted() throws InterruptedException {
        send(new JsonObject().put(CheckOrder.CHECKED, true));
        return parent.readLine().equals(CheckOrder.PRINT);
    }

    /** Reports that the command ends with a status, and has printed its report or its error. */
    public void commandEnds(int status) {
        send(new JsonObject().put(CheckOrder.ENDED, status));
    }

    private void send(JsonObject message) {
        byte[] bytes = (order.mark() + message.encode() + "\n").getBytes(StandardCharsets.UTF_8);
        lock.lock();
        try {
            out.flush();
            out.write(bytes, 0, bytes.length); // at once, so that no other output is amid it
            out.flush();
        } finally {
            lock.unlock();
        }
    }
}
