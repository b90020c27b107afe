package dev.nereid.server.lifecycle;

import dev.nereid.server.response.ResponseHolder;
import dev.nereid.server.response.ResponseHolders;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One loaded life of a model version, from its readiness to its close. Safe for use by any thread.
 *
 * <p>A generation is ready, then draining, then closed. Each user of its model holds a lease meanwhile. A request holds
 * one until it is queued; then the scheduler counts it. {@link #drain} refuses leases; when the last one is released,
 * the scheduler completes the requests that it has, and then everything is closed. An update of the instances replaces
 * the model of the generation and not the generation.
 */
public final class Generation implements Resolution {
    private static final Logger LOG = LoggerFactory.getLogger(Generation.class);
    /** How long the last use is not written again. */
    private static final long USE_NANOS = 1_000_000;

    /** How long a close first waits for requests before it searches for holders of responses. */
    private static final long FIRST_SEARCH_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The longest such wait. A plugin may hold responses on purpose, and each search collects the heap. */
    private static final long LAST_SEARCH_NANOS = TimeUnit.MINUTES.toNanos(10);

    private final LeaseCounter leases = new LeaseCounter();
    private final CompletableFuture<Void> closed = new CompletableFuture<>();
    private final String key;
    private final Hooks hooks;
    private final ResponseHolders holders;
    private final long fileBytes;
    private volatile long byteSize;
    private volatile ServedModel model;

    /** When the generation was last used; written at most once in {@link #USE_NANOS}, so that threads share it. */
    private volatile long usedNanos;

    /**
     * Creates a ready generation without leases.
     *
     * @param model the loaded version, owned by the generation
     * @param fileBytes the size of its files, from which its memory is estimated if its backend does not report it
     * @param hooks called around its close
     * @param holders the generations that hold responses of others
     */
    Generation(String key, ServedModel model, long fileBytes, Hooks hooks, ResponseHolders holders) {
        this.holders = holders;
        this.key = key;
        this.model = model;
        this.fileBytes = fileBytes;
        byteSize = currentBytes();
        this.hooks = hooks;
        usedNanos = System.nanoTime();
    }

    public String key() {
        return key;
    }

    /**
     * Returns the memory that the generation takes.
     *
     * @return the bytes that its backend last reported, or an estimate; changed by {@link LiveGenerations#resize} alone
     */
    public long byteSize() {
        return byteSize;
    }

    /** Updates the memory of the generation. Called by one thread at a time, which has a lease or owns it. */
    void resize() {
        byteSize = currentBytes();
    }

    private long currentBytes() {
        long reported = model.memory().byteSize();
        if (reported > 0) {
            return reported;
        }
        return model.isEnsemble() ? 0 : ModelDescriber.estimatedBytes(fileBytes);
    }

    /** Records a use at a time of {@link System#nanoTime()}, which is kept to a millisecond. */
    public void used(long nanos) {
        if (nanos - usedNanos > USE_NANOS) {
            usedNanos = nanos;
        }
    }

    /** Returns when the generation was last used, or else loaded, on the scale of {@link System#nanoTime()}. */
    public long usedNanos() {
        return usedNanos;
    }

    /**
     * Returns whether nothing uses the generation at this moment.
     *
     * @return {@code true} if it has no requests in flight and no live sequences, and its backend is not asked for its
     *     memory
     */
    public boolean isIdle() {
        return model.scheduler().isIdle() && !model.memory().isCalling();
    }

    /**
     * Refuses leases for the moment, if nothing uses the generation. Called by one control task at a time, which then
     * {@linkplain #drain drains} it, or lets it {@linkplain #resume() resume}.
     *
     * @return {@code true} if it has no leases and no requests, and gets none until then; otherwise nothing has changed
     */
    boolean suspend() {
        if (leases.suspend() && isIdle()) {
            return true;
        }
        leases.resume();
        return false;
    }

    /** Gives leases again, after {@link #suspend}. */
    void resume() {
        leases.resume();
    }

    /**
     * Returns the loaded version. The caller has a lease, or reads only properties that stay after the end.
     *
     * @return the version, another one after an update of its instances
     */
    public ServedModel model() {
        return model;
    }

    /** Replaces the version by the same one with other instances. Called by one control task at a time. */
    public void update(ServedModel updated) {
        model = updated;
    }

    /** Acquires a lease, to be {@linkplain #release released}; returns {@code false} once the generation drains. */
    boolean acquire() {
        return leases.acquire();
    }

    /** Releases a lease, on any thread. */
    public void release() {
        leases.release();
    }

    /**
     * Refuses leases from now on, and closes the version when the last one is released. Never blocks. Called once, after
     * the catalog leads new requests elsewhere.
     *
     * @param executor runs the close, which waits for the requests in progress
     * @param whenEnded is notified of the end before the threads that wait for it, with the error if the close failed
     */
    void drain(Executor executor, Consumer<@Nullable Throwable> whenEnded) {
        model.expectUnload(); // requests that wait in vain may have leases, such as requests of ensembles
        leases.close(() -> executor.execute(() -> close(whenEnded)));
    }

    private void close(Consumer<@Nullable Throwable> whenEnded) {
        Throwable failure = null;
        try {
            closeModel();
        } catch (Throwable e) { // of a backend or an agent
            failure = e;
        }
        try {
            whenEnded.accept(failure);
        } finally {
            closed.complete(null);
        }
    }

    private void closeModel() {
        try {
            hooks.beforeClose();
            awaitRequests();
        } finally {
            try {
                model.close();
            } finally {
                hooks.afterClose();
            }
        }
    }

    /**
     * Waits for the requests that the version has. It searches for senders and leases that its plugin has forgotten
     * and, when all requests are completed, for responses that plugins have. When no client has a response, it releases
     * the responses that this version holds. The holder of this version's responses may be this version, or may wait
     * for it in turn. Until then the plugin may need the responses that it holds.
     */
    private void awaitRequests() {
        model.drain();
        long nanos = FIRST_SEARCH_NANOS;
        long handles = model.openHandles();
        boolean wasHeld = false;
        boolean isReported = false;
        try {
            while (!model.awaitIdle(nanos)) {
                boolean isHeld = isHeldByResponses();
                long before = handles;
                handles = model.openHandles();
                if (mayHaveForgotten()) {
                    holders.findForgotten();
                    nanos = nextSearchNanos(nanos, handles < before);
                }
                if (isHeld && wasHeld) { // still, so that no request has moved between threads meanwhile
                    model.responses().ifPresent(this::release);
                }
                wasHeld = isHeld;
                isReported = isReported || (nanos > 2 * FIRST_SEARCH_NANOS && reportHeld());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Releases the held responses. Leases stay while any response of this version may be made of their outputs. */
    private void release(ResponseHolder own) {
        own.releaseAll();
        if (model.scheduler().openResponses() == 0) {
            own.endLeases();
        }
    }

    /**
     * Returns the time until the next search. It is short if the plugin has just ended something, and so is still at
     * work.
     */
    static long nextSearchNanos(long nanos, boolean hasEndedSome) {
        return hasEndedSome ? FIRST_SEARCH_NANOS : Math.min(2 * nanos, LAST_SEARCH_NANOS);
    }

    /** Logs the objects that plugins have to end or close before it is closed; returns whether there are any. */
    private boolean reportHeld() {
        String reason = heldReason();
        if (!reason.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("model", model.settings().name())
                    .addKeyValue("version", model.version())
                    .log(
                            "unload of model '{}', version {}, {}",
                            model.settings().name(),
                            model.version(),
                            reason);
        }
        return !reason.isEmpty();
    }

    /** Returns whether it is a load of this version of a model, which its key names. */
    boolean isOf(String model, long version) {
        return key.equals(model) && this.model.version() == version;
    }

    /** Names the objects that plugins have to end or close before the generation is closed; empty if there are none. */
    public String heldReason() {
        String responses = holders.reason(List.of(model.scheduler().source()));
        return responses.isEmpty() ? model.unendedReason() : responses;
    }

    /** Names the objects that its plugin has to end, although no client waits for them; empty if there are none. */
    public String unended() {
        String reason = model.unendedReason();
        return reason.isEmpty()
                ? ""
                : "model '" + model.settings().name() + "', version " + model.version() + ", " + reason;
    }

    /**
     * Searches for objects that plugins have forgotten, if requests of the generation may wait for them. Takes as long
     * as a collection of the heap.
     */
    public void findForgotten() {
        if (mayHaveForgotten()) {
            holders.findForgotten();
        }
    }

    /**
     * Returns whether nothing is left of the requests but responses that models hold, of this version or received by it.
     *
     * @return {@code false} while a request waits or is executed, or a client has a response
     */
    public boolean isHeld() {
        Object source = model.scheduler().source();
        if (model.isEnsemble()) {
            long held = holders.requestsOf(source);
            return held > 0 && held >= model.inFlight();
        }
        return isHeld(holders.sizeOf(source));
    }

    /**
     * Returns the same without regard to leases, since the holder of a lease may have passed the output on to a client.
     */
    private boolean isHeldByResponses() {
        return !model.isEnsemble()
                && isHeld(holders.responsesOf(model.scheduler().source()));
    }

    private boolean isHeld(long byOthers) {
        long own = model.responses().map(ResponseHolder::size).orElse(0);
        return own + byOthers > 0 && !model.isWorking() && model.scheduler().openResponses() <= byOthers;
    }

    /**
     * Returns whether requests may wait for objects that a plugin has forgotten. The plugin may hold a response of an
     * ensemble that has this model as a step: the ensemble's responses refer to the responses of its steps.
     */
    private boolean mayHaveForgotten() {
        if (model.openHandles() > 0) {
            return true;
        }
        return holders.areHolding() && model.hasRequests() && (model.isEnsemble() || !model.isWorking());
    }

    /**
     * Waits until one of several generations is closed.
     *
     * @param generations the generations that may close
     * @param ended ends the wait too
     * @param nanos how long to wait
     * @return whether one was closed, or the wait ended, in time
     */
    static boolean awaitClose(List<Generation> generations, CompletableFuture<Void> ended, long nanos)
            throws InterruptedException {
        List<CompletableFuture<Void>> ends = new ArrayList<>(List.of(ended));
        generations.forEach(generation -> ends.add(generation.closed));
        try {
            CompletableFuture.anyOf(ends.toArray(new CompletableFuture<?>[0]))
                    .get(Math.max(0, nanos), TimeUnit.NANOSECONDS);
            return true;
        } catch (ExecutionException e) {
            throw new IllegalStateException(e); // they never fail
        } catch (TimeoutException e) {
            return false;
        }
    }

    /** Hooks around the close of a generation, called on the thread that closes it. May block. */
    public interface Hooks {
        /** Does nothing. */
        Hooks NONE = new Hooks() {};

        /** Called when the generation has no lease any more, before its scheduler completes the requests that it has. */
        default void beforeClose() {}

        /** Called when the generation is closed, or its close has failed. Frees the files of its load. */
        default void afterClose() {}
    }
}
