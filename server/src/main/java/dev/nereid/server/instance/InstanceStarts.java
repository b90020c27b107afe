package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;

/**
 * Waits until the instances of a load have started. Safe for use by any thread; blocks.
 *
 * <p>A start that cannot be cancelled goes on when its load has failed, and its instance is closed after it. A start that
 * never ends would leave one more instance behind with each load, so that no other load of the model begins until then.
 */
public final class InstanceStarts {
    /** How long a load waits for its instances. */
    public static final Duration LIMIT = Duration.ofHours(1);

    private final LoadWaits waits;
    private final Duration limit;

    /** The starts that go on though their instances are to be closed, by the key of the model. */
    private final Map<String, Set<CompletableFuture<Void>>> stuck = new ConcurrentHashMap<>();

    /**
     * Creates the starts of a server's instances.
     *
     * @param waits the waits of its loads
     * @param limit how long one may take
     */
    public InstanceStarts(LoadWaits waits, Duration limit) {
        this.waits = waits;
        this.limit = limit;
    }

    /**
     * Waits until all instances of a load have started, or one has failed.
     *
     * @param plans their plans
     * @param instances the instances, in the order of the plans
     * @throws BackendException as the first that failed; {@link ErrorCode#UNAVAILABLE} if they take too long
     * @throws InferenceException {@link ErrorCode#UNAVAILABLE} if the server stops, or the thread is interrupted
     */
    public void await(List<InstancePlan> plans, List<ModelInstance> instances) {
        List<CompletableFuture<Void>> starts = instances.stream()
                .map(instance -> instance.started().toCompletableFuture())
                .toList();
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
            if (!waits.await(ended, limit)) {
                throw new BackendException(
                        ErrorCode.UNAVAILABLE,
                        "instances " + pending(plans, starts) + " have not started after " + limit.toSeconds()
                                + " s (expected: a start within this time)");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new InferenceException(ErrorCode.UNAVAILABLE, "load interrupted during the start of instances");
        }
        if (ended.isCompletedExceptionally()) {
            InstanceFactory.rethrow(ended.exceptionNow());
        }
    }

    /**
     * Records a start that goes on though its instance is to be closed.
     *
     * @param model the key of the model
     * @param start the start
     */
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
                    count + " instances of an earlier load have not ended their starts, which cannot be cancelled"
                            + " (expected: their end; retry later, or start the server again)");
        }
    }

    private static List<String> pending(List<InstancePlan> plans, List<CompletableFuture<Void>> starts) {
        return IntStream.range(0, plans.size())
                .filter(i -> !starts.get(i).isDone())
                .mapToObj(i -> plans.get(i).name())
                .toList();
    }
}
