package dev.nereid.repository;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Scans a remote repository for a limited time. So a repository that cannot be reached delays nothing else. Safe for
 * use by any thread.
 *
 * <p>A scan runs on a separate thread, and goes on when no thread waits for it any more. At most one listing and a few
 * scans for single models run at a time. Once a scan has failed or taken too long, others are awaited for a moment
 * only, until one succeeds. The models of the last complete listing are remembered.
 */
final class RemoteScan {
    private static final Logger LOG = LoggerFactory.getLogger(RemoteScan.class);

    /** The most scans for single models at a time. */
    private static final int MAX_SEARCHES = 16;

    private final RepositoryRoot root;
    private final Patience patience;
    private final Semaphore searches = new Semaphore(MAX_SEARCHES);
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private @Nullable CompletableFuture<NavigableMap<String, String>> listing;

    /** Set when no thread awaits the listing in progress any longer, such as the listing of a large repository. */
    private volatile boolean isOverdue;

    private volatile Optional<NavigableMap<String, String>> last = Optional.empty();
    private volatile Optional<InferenceException> failure = Optional.empty();

    /**
     * How long scans are awaited. Immutable.
     *
     * @param usual while the repository can be reached
     * @param failing after a scan that failed or took too long
     */
    record Patience(Duration usual, Duration failing) {
        static final Patience DEFAULT = new Patience(Duration.ofSeconds(10), Duration.ofMillis(250));
    }

    RemoteScan(RepositoryRoot root, Patience patience) {
        this.root = root;
        this.patience = patience;
    }

    RepositoryRoot root() {
        return root;
    }

    /** Returns the models of the last complete listing, with their fingerprints. */
    NavigableMap<String, String> models() {
        return last.orElseGet(TreeMap::new);
    }

    /** Returns the failure of the last scan; empty if it did not fail. */
    Optional<InferenceException> failure() {
        return failure;
    }

    /** Returns whether the repository was listed, and the last scan did not fail. */
    boolean isKnown() {
        return last.isPresent() && failure.isEmpty();
    }

    /** Lists the models, and waits for the end however long it takes. */
    void list() {
        await(listing(), Optional.empty());
    }

    /** Lists the models; {@link #models} has them, if that does not take too long. */
    void listInTime() {
        CompletableFuture<?> running = listing();
        Duration limit = isOverdue ? patience.failing() : time();
        if (await(running, Optional.of(limit)).isPresent() && !running.isDone()) {
            isOverdue = true;
            if (last.isEmpty()) {
                failed(late());
            }
        }
    }

    /**
     * Finds a model.
     *
     * @return its fingerprint; empty if there is none
     * @throws InferenceException if the scan fails or takes too long
     */
    Optional<String> find(String model) {
        if (!searches.tryAcquire()) {
            throw failure.orElseGet(() -> unreachable(MAX_SEARCHES + " requests to it are in progress"));
        }
        CompletableFuture<Optional<String>> scan =
                start(() -> root.fingerprint(model), this::modelFailed, searches::release);
        Optional<InferenceException> failed = await(scan, Optional.of(time()));
        if (failed.isPresent()) {
            if (!scan.isDone()) {
                modelFailed(failed.get());
            }
            throw failed.get();
        }
        return scan.join();
    }

    /** Returns whether a failure is one of the whole repository, and not of one model. */
    private static boolean isOfRepository(InferenceException e) {
        return e.code() == ErrorCode.UNAVAILABLE || e.code() == ErrorCode.INTERNAL;
    }

    private Duration time() {
        return failure.isPresent() ? patience.failing() : patience.usual();
    }

    private CompletableFuture<NavigableMap<String, String>> listing() {
        lock.lock();
        try {
            if (listing == null || listing.isDone()) {
                isOverdue = false;
                listing = start(
                        () -> {
                            NavigableMap<String, String> models = root.scan();
                            last = Optional.of(models);
                            return models;
                        },
                        this::failed,
                        () -> {});
            }
            return listing;
        } finally {
            lock.unlock();
        }
    }

    private <T> CompletableFuture<T> start(Supplier<T> scan, Consumer<InferenceException> whenFailed, Runnable end) {
        CompletableFuture<T> outcome = new CompletableFuture<>();
        Runnable task = () -> {
            try {
                T found = scan.get();
                succeeded();
                outcome.complete(found);
            } catch (InferenceException e) {
                whenFailed.accept(e);
                outcome.completeExceptionally(e);
            } catch (RuntimeException | Error e) {
                LOG.atError()
                        .addKeyValue("repository", root.location())
                        .setCause(e)
                        .log("model repository failed unexpectedly (repository '{}')", root.location());
                InferenceException failed = new InferenceException(
                        ErrorCode.INTERNAL,
                        "model repository '" + root.location() + "': "
                                + ServerPaths.namesAlone("internal error: " + e, ""));
                failed(failed);
                outcome.completeExceptionally(failed);
            } finally {
                end.run();
            }
        };
        Thread.ofVirtual().name("remote-scan").start(task);
        return outcome;
    }

    /** Waits for a scan; returns the failure, also if it takes too long. */
    private Optional<InferenceException> await(CompletableFuture<?> scan, Optional<Duration> limit) {
        try {
            if (limit.isPresent()) {
                scan.get(limit.get().toNanos(), TimeUnit.NANOSECONDS);
            } else {
                scan.get();
            }
            return Optional.empty();
        } catch (ExecutionException e) {
            return Optional.of(
                    e.getCause() instanceof InferenceException known
                            ? known
                            : unreachable(String.valueOf(e.getCause())));
        } catch (TimeoutException e) {
            return Optional.of(late());
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return Optional.of(unreachable("the scan was interrupted"));
        }
    }

    private InferenceException late() {
        return failure.orElseGet(
                () -> unreachable("no response after " + patience.usual().toMillis() + " ms"));
    }

    /** Records the failure of a scan for one model. The reason of a failed listing stays, since it says more. */
    private void modelFailed(InferenceException reason) {
        lock.lock();
        try {
            if (failure.isEmpty() && isOfRepository(reason)) {
                failed(reason);
            }
        } finally {
            lock.unlock();
        }
    }

    private void failed(InferenceException reason) {
        lock.lock();
        try {
            if (failure.isEmpty()) {
                LOG.atWarn().addKeyValue("repository", root.location()).log(reason.publicMessage());
            }
            failure = Optional.of(reason);
        } finally {
            lock.unlock();
        }
    }

    private void succeeded() {
        if (failure.isPresent()) {
            LOG.atInfo()
                    .addKeyValue("repository", root.location())
                    .log("model repository can be reached again (repository '{}')", root.location());
        }
        failure = Optional.empty();
    }

    private InferenceException unreachable(String reason) {
        return new InferenceException(
                ErrorCode.UNAVAILABLE,
                "model repository '" + root.location() + "': cannot be reached: " + reason
                        + " (it is tried again by itself)");
    }
}
