package dev.nereid.server.lifecycle;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelRef;
import dev.nereid.scheduler.queue.SequenceUse;
import dev.nereid.server.response.ResponseHolders;
import dev.nereid.spi.Sequence;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Knows all generations that are not closed, and closes them. Lock-free; safe for use by any thread.
 *
 * <p>A generation that was replaced is in no catalog while it drains, but still executes requests.
 */
public final class LiveGenerations {
    /**
     * How many generations of one version drain at a time. A load waits when there are as many; an unload does not, and
     * may make one more drain.
     */
    static final int MAX_DRAINING = 2;

    /** How long a reload waits for a generation without sequences to close, before it ends sequences of another one. */
    private static final long CLOSE_NANOS = TimeUnit.SECONDS.toNanos(5);

    private static final Logger LOG = LoggerFactory.getLogger(LiveGenerations.class);

    /** Follows the generations from their begin to their close. Called by any thread; never blocks or throws. */
    public interface Listener {
        /** Called when a generation was loaded, before it serves. */
        default void begun(Generation generation) {}

        /**
         * Called when a generation takes more or less memory than before; between its begin and its close.
         *
         * @param before its earlier memory, in bytes
         */
        default void resized(Generation generation, long before) {}

        /** Called when a generation is closed, or its close has failed. */
        default void closed(Generation generation) {}
    }

    private final Set<Generation> live = ConcurrentHashMap.newKeySet();
    private final Set<Generation> draining = ConcurrentHashMap.newKeySet();

    /** The replaced generations with sequences that continue, the oldest first. */
    private final CopyOnWriteArrayList<Followed> followed = new CopyOnWriteArrayList<>();

    private final CompletableFuture<Void> ended = new CompletableFuture<>();
    /** Set when the sequences of replaced generations end at once. */
    private volatile boolean sequencesEnded;

    private final LoadEvents events = new LoadEvents();
    private final ResponseHolders holders = new ResponseHolders();
    private final FatalErrorHandler fatalErrors;
    private final Runnable whenFreed;
    private volatile Listener listener = new Listener() {};
    private final Executor closers = task -> Thread.ofVirtual().name("unload").start(task);

    /**
     * A replaced generation with sequences that continue.
     *
     * @param generation the generation, which still has leases to give
     * @param isReplaced whether the catalog leads to another one already; until then it must not drain
     */
    private record Followed(Generation generation, Runnable drain, AtomicBoolean isReplaced) {
        /** Returns whether it is one of the generations that a client may mean. */
        boolean is(String key, ModelRef ref) {
            return generation.key().equals(key)
                    && (ref.version() == ModelRef.LATEST
                            || ref.version() == generation.model().version());
        }
    }

    /**
     * Creates an empty set.
     *
     * @param fatalErrors handles errors of backends that are closed
     * @param whenFreed called after each close, when the memory of the model is free; never blocks
     */
    public LiveGenerations(FatalErrorHandler fatalErrors, Runnable whenFreed) {
        this.fatalErrors = fatalErrors;
        this.whenFreed = whenFreed;
    }

    /** Returns the generations that hold responses of other ones. */
    public ResponseHolders holders() {
        return holders;
    }

    /** Returns the counts of loads and unloads. */
    public LoadEvents events() {
        return events;
    }

    /** Sets the listener. Called before the first generation begins. */
    public void follow(Listener follower) {
        listener = follower;
    }

    /**
     * Begins the generation of a version that was loaded.
     *
     * @param model the version, owned by the generation
     * @param fileBytes the size of its files, from which its memory is estimated if its backend does not report it
     * @param hooks called around its close
     */
    public Generation begin(String key, ServedModel model, long fileBytes, Generation.Hooks hooks) {
        Generation generation = new Generation(key, model, fileBytes, hooks, holders);
        listener.begun(generation);
        live.add(generation);
        return generation;
    }

    /** Updates the memory of a generation. The caller has a lease; one at a time for each generation. */
    void resize(Generation generation) {
        long before = generation.byteSize();
        generation.resize();
        if (generation.byteSize() != before) {
            listener.resized(generation, before);
        }
    }

    /**
     * Drains a generation, and reports its end. Never blocks.
     *
     * @param generation a generation that no new request finds any more
     * @param whenClosed runs when it is closed, on the thread that closed it
     */
    public void drain(Generation generation, Runnable whenClosed) {
        String name = generation.model().config().getName();
        drain(
                generation,
                () -> {
                    events.unloaded(name);
                    whenClosed.run();
                },
                closers);
    }

    /**
     * Suspends all generations of a model, if nothing uses any of them. Each is then to be {@linkplain #drain drained}.
     *
     * @return whether all are suspended; otherwise none is
     */
    public boolean suspend(Collection<Generation> generations) {
        List<Generation> suspended = new ArrayList<>();
        for (Generation generation : generations) {
            if (!generation.suspend()) {
                suspended.forEach(Generation::resume);
                return false;
            }
            suspended.add(generation);
        }
        return true;
    }

    /**
     * Prepares the replacement of a generation. Requests of its sequences find it by {@link #following}, so that none
     * is lost when the catalog leads other requests to the new generation. Never blocks.
     *
     * @param whenClosed as for {@link #drain}
     * @return to be run when no other request finds the generation any more: drains it when its sequences have ended
     */
    public Runnable replace(Generation generation, Runnable whenClosed) {
        Followed entry = new Followed(generation, () -> drain(generation, whenClosed), new AtomicBoolean());
        draining.add(generation);
        followed.add(entry);
        return () -> {
            entry.isReplaced().set(true);
            if (!generation.model().scheduler().whenSequencesEnd(() -> end(entry)) || sequencesEnded) {
                end(entry);
            }
        };
    }

    /** Drains a generation with sequences that continue, once, and not before it is replaced. */
    private void end(Followed entry) {
        if (entry.isReplaced().get() && followed.remove(entry)) {
            entry.drain().run();
        }
    }

    /** Ends the sequences of the replaced generations of a model, as soon as each has no request. */
    public void endReplaced(String key) {
        followed.stream().filter(entry -> entry.generation().key().equals(key)).forEach(this::end);
    }

    /** Returns whether the sequences of a replaced generation go on. */
    boolean hasFollowed() {
        return !followed.isEmpty();
    }

    /**
     * Acquires a lease on the replaced generation on which a sequence began.
     *
     * @param ref the version that the client means
     * @return the generation; {@code null} if the sequence lives on none
     */
    @Nullable
    Generation following(String key, ModelRef ref, Sequence.Id id) {
        for (Followed entry : followed.reversed()) {
            if (entry.is(key, ref)
                    && entry.generation().model().scheduler().hasSequence(id)
                    && entry.generation().acquire()) {
                return entry.generation();
            }
        }
        return null;
    }

    /**
     * Ends a sequence on all replaced generations of a version, after its requests that wait: it starts again on
     * another one.
     */
    void startedAgain(Sequence.Id id, Generation other) {
        ModelRef version = new ModelRef(other.key(), other.model().version());
        for (Followed entry : followed) {
            if (entry.is(other.key(), version) && !entry.generation().equals(other)) {
                entry.generation().model().scheduler().replaceSequence(id);
            }
        }
    }

    /** Closes, on this thread, a generation that was never in the catalog and has served no request. */
    public void discard(Generation generation) {
        drain(generation, () -> {}, Runnable::run);
    }

    private void drain(Generation generation, Runnable whenClosed, Executor closer) {
        String name = generation.model().config().getName();
        long version = generation.model().version();
        draining.add(generation);
        generation.drain(closer, failure -> {
            try {
                report(name, version, failure);
                whenFreed.run();
                whenClosed.run();
            } finally { // otherwise it would drain for good
                draining.remove(generation);
                live.remove(generation);
                listener.closed(generation);
            }
        });
    }

    private void report(String name, long version, @Nullable Throwable failure) {
        if (failure == null) {
            LOG.atInfo()
                    .addKeyValue("model", name)
                    .addKeyValue("version", version)
                    .log("successfully unloaded '{}' version {}", name, version);
        } else {
            fatalErrors.check(failure);
            LOG.atError()
                    .addKeyValue("model", name)
                    .addKeyValue("version", version)
                    .setCause(failure)
                    .log("model could not be closed (model '{}', version {})", name, version);
        }
    }

    /**
     * Waits until fewer generations of each version of a model drain than may at a time.
     *
     * @param model the model's key
     * @param nanos how long to wait
     * @return whether another generation of each may drain now; not after {@link #end}
     */
    public boolean awaitDrained(String model, long nanos) throws InterruptedException {
        long deadline = System.nanoTime() + nanos;
        for (long version : drainingVersions(model)) {
            List<Generation> earlier = draining(model, version);
            while (earlier.size() >= MAX_DRAINING) {
                long patience = Math.min(CLOSE_NANOS, deadline - System.nanoTime());
                boolean closed = isClosing(earlier) && Generation.awaitClose(earlier, ended, patience);
                if (!closed) {
                    endOldest(model, version);
                    closed = Generation.awaitClose(earlier, ended, deadline - System.nanoTime());
                }
                if (!closed || ended.isDone()) {
                    return false;
                }
                earlier = draining(model, version);
            }
        }
        return true;
    }

    /** Returns whether one of the generations has no sequence any more, so that it closes with its last request. */
    private boolean isClosing(List<Generation> generations) {
        List<Generation> lasting = followed.stream().map(Followed::generation).toList();
        return !lasting.containsAll(generations);
    }

    /** Ends all waits for drained generations. The server stops, and nothing is loaded any more. */
    public void end() {
        ended.complete(null);
    }

    /**
     * Ends the sequences of replaced generations, as soon as each has no request, as the server stops. Never blocks.
     */
    public void endSequences() {
        sequencesEnded = true; // before the generations, among which one may not be replaced yet
        followed.forEach(this::end);
    }

    /** Returns whether {@link #end} was called: the server stops. */
    public boolean isEnded() {
        return ended.isDone();
    }

    /**
     * Waits until all generations are closed. All of them drain, and none begins any more.
     *
     * @param nanos how long to wait
     * @return whether all were closed in time
     */
    public boolean awaitAllClosed(long nanos) throws InterruptedException {
        long deadline = System.nanoTime() + nanos;
        for (Generation generation : all()) {
            if (!Generation.awaitClose(List.of(generation), new CompletableFuture<>(), deadline - System.nanoTime())) {
                return false;
            }
        }
        return true;
    }

    /** Ends the sequences of the oldest replaced generation of a version, since another one is to drain. */
    private void endOldest(String model, long version) {
        ModelRef ref = new ModelRef(model, version);
        followed.stream().filter(entry -> entry.is(model, ref)).findFirst().ifPresent(this::end);
    }

    private Set<Long> drainingVersions(String model) {
        Set<Long> versions = new TreeSet<>();
        for (Generation generation : draining) {
            if (generation.key().equals(model)) {
                versions.add(generation.model().version());
            }
        }
        return versions;
    }

    private List<Generation> draining(String model, long version) {
        return draining.stream()
                .filter(generation -> generation.model().version() == version)
                .filter(generation -> generation.key().equals(model))
                .toList();
    }

    /** Describes the waits of the draining generations of the model with a key, as the predicate of a sentence. */
    public String whatDrains(String model) {
        boolean isAsked = draining.stream()
                .anyMatch(generation -> generation.key().equals(model)
                        && generation.model().memory().isCalling());
        return isAsked
                ? "still complete requests, or wait for the backend, which has not returned from memoryUsage,"
                : "still complete requests";
    }

    /** Returns the sequences of each generation of a version that is not closed, if its model has sequences. */
    List<SequenceUse> sequenceUses(String model, long version) {
        return live.stream()
                .filter(generation ->
                        generation.key().equals(model) && generation.model().version() == version)
                .flatMap(generation -> generation.model().sequenceUse().stream())
                .toList();
    }

    /** Names the objects that plugins have to end or close before a version is unloaded; empty if there are none. */
    String heldReason(String model, long version) {
        String responses = holders.reason(sources(model, version));
        return responses.isEmpty()
                ? live.stream()
                        .filter(generation -> generation.isOf(model, version))
                        .map(generation -> generation.model().unendedReason())
                        .filter(reason -> !reason.isEmpty())
                        .findFirst()
                        .orElse("")
                : responses;
    }

    /** Returns the sources of the responses of each generation of a version that is not closed. */
    List<Object> sources(String model, long version) {
        return live.stream()
                .filter(generation -> generation.isOf(model, version))
                .map(generation -> generation.model().scheduler().source())
                .toList();
    }

    /** Returns a copy of all generations that are not closed, in no order. */
    public List<Generation> all() {
        return List.copyOf(live);
    }
}
