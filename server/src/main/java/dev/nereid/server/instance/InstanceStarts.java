package dev.nereid.server.instance;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelInstance;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.stream.IntStream;

/** Waits until the instances of a load have started. Immutable; safe for use by any thread; blocks. */
public final class InstanceStarts {
    /** How long a load waits for its instances. */
    public static final Duration LIMIT = Duration.ofHours(1);

    private final LoadWaits waits;
    private final Duration limit;

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

    private static List<String> pending(List<InstancePlan> plans, List<CompletableFuture<Void>> starts) {
        return IntStream.range(0, plans.size())
                .filter(i -> !starts.get(i).isDone())
                .mapToObj(i -> plans.get(i).name())
                .toList();
    }
}
