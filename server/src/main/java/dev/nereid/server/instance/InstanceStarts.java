package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.BiConsumer;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Waits until the instances of a load have started, however long that takes. Safe for use by any thread; blocks.
 *
 * <p>A start that cannot be cancelled goes on when its load has failed, and its instance is closed after it. A start that
 * never ends would leave one more instance behind with each load, so that no other load of the model begins until then.
 */
public final class InstanceStarts {
    private static final Logger LOG = LoggerFactory.getLogger(InstanceStarts.class);

    private final LoadWaits waits;
    private final BiConsumer<List<String>, Duration> report;

    /** The starts that go on though their instances are to be closed, by the key of the model. */
    private final Map<String, Set<CompletableFuture<Void>>> stuck = new ConcurrentHashMap<>();

    public InstanceStarts(LoadWaits waits) {
        this(waits, InstanceStarts::log);
    }

    /**
     * Creates the starts of a server's instances.
     *
     * @param report receives the names of instances that have not started, and how long the load has waited for them, after each
     *     {@link LoadWaits#INTERVAL}
     */
    InstanceStarts(LoadWaits waits, BiConsumer<List<String>, Duration> report) {
        this.waits = waits;
        this.report = report;
    }

    private static void log(List<String> instances, Duration waited) {
        LOG.atWarn()
                .addKeyValue("instances", instances)
                .log("instances {} have not started after {} s", instances, waited.toSeconds());
    }

    public LoadWaits waits() {
        return waits;
    }

    /**
     * Waits until all instances of a load have started, or one has failed.
     *
     * @throws BackendException as the first that failed
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if the server stops, or the thread is interrupted
     */
    public void await(List<BackendInstance> instances) {
        List<CompletableFuture<Void>> starts =
                instances.stream().map(BackendInstance::started).toList();
        CompletableFuture<Void> all = CompletableFuture.allOf(starts.toArray(CompletableFuture<?>[]::new));
        CompletableFuture<Void> ended = all.copy();
        for (CompletableFuture<Void> start : starts) {
            CompletableFuture<Void> _ = start.whenComplete((_, failure) -> {
                if (failure != null) {
                    ended.completeExceptionally(failure);
                }
            });
        }
        try {
            Duration waited = Duration.ZERO;
            while (!waits.await(ended, LoadWaits.INTERVAL)) {
                waited = waited.plus(LoadWaits.INTERVAL);
                report.accept(pending(instances), waited);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InferenceException(ErrorCode.UNAVAILABLE, "load interrupted during the start of instances");
        }
        if (ended.isCompletedExceptionally()) {
            InstanceFactory.rethrow(ended.exceptionNow());
        }
    }

    /** Records a start that goes on though its instance is to be closed. */
    @SuppressWarnings("CollectionUndefinedEquality") // each start is another object
    public void goesOn(String model, CompletableFuture<Void> start) {
        stuck.compute(model, (_, before) -> {
            Set<CompletableFuture<Void>> all = before == null ? ConcurrentHashMap.newKeySet() : before;
            all.add(start);
            return all;
        });
        CompletableFuture<Void> _ = start.whenComplete((_, _) -> stuck.computeIfPresent(model, (_, all) -> {
            all.remove(start);
            return all.isEmpty() ? null : all;
        }));
    }

    /**
     * Refuses another load of a model while starts of an earlier one go on.
     *
     * @param model the key of the model
     * @throws BackendException {@link ErrorCode#UNAVAILABLE} if any goes on
     */
    public void check(String model) {
        Set<CompletableFuture<Void>> all = stuck.get(model);
        int count = all == null ? 0 : all.size();
        if (count > 0) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "starts of an earlier load cannot be cancelled, and go on: " + count
                            + " (expected: their end; retry later, or start the server again)");
        }
    }

    private static List<String> pending(List<BackendInstance> instances) {
        return instances.stream()
                .filter(instance -> !instance.started().isDone())
                .map(instance -> instance.plan().name())
                .toList();
    }
}
