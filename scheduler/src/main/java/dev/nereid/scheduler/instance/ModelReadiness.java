package dev.nereid.scheduler.instance;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.scheduler.time.Timer;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** Checks whether a model can serve: while one of its instances can. Immutable; safe for use by any thread. */
public final class ModelReadiness {
    private final InstanceThreads threads;
    private final LongSupplier nanoTime;
    private final Timer timer;
    private final FatalErrorHandler fatalErrors;

    /** Creates the check of a model. The timer limits the checks of instances. */
    public ModelReadiness(InstanceThreads threads, LongSupplier nanoTime, Timer timer, FatalErrorHandler fatalErrors) {
        this.fatalErrors = fatalErrors;
        this.threads = threads;
        this.nanoTime = nanoTime;
        this.timer = timer;
    }

    /**
     * Returns whether an instance is ready by its last check. An instance that is unavailable, or fails for the moment,
     * counts as ready: its backend is about to let it go on, which is no reason to take the server out of service.
     */
    public boolean isReady() {
        for (Instance instance : threads.alive()) {
            ReadinessCheck check = instance.readiness();
            if (instance.availability().reason().isPresent()
                    || check.begin(nanoTime, timer, fatalErrors)
                            .getNow(check.last())
                            .isReady()) {
                return true;
            }
        }
        return false;
    }

    /** Returns the first result that is ready, or else the reason of the first instance. Does not wait. */
    public CompletionStage<Readiness> check() {
        List<CompletableFuture<Readiness>> pending = new ArrayList<>(0);
        Readiness reason = null;
        for (Instance instance : threads.alive()) {
            CompletableFuture<Readiness> result = check(instance);
            if (!result.isDone()) {
                pending.add(result);
            } else if (result.join().isReady()) {
                return result.minimalCompletionStage();
            } else if (reason == null) {
                reason = result.join();
            }
        }
        return pending.isEmpty()
                ? CompletableFuture.completedStage(reason == null ? Readiness.NOT_READY : reason)
                : any(pending, reason);
    }

    private CompletableFuture<Readiness> check(Instance instance) {
        return instance.availability()
                .reason()
                .map(reason -> CompletableFuture.completedFuture(Readiness.notReady(ErrorCode.UNAVAILABLE, reason)))
                .orElseGet(() -> instance.readiness().begin(nanoTime, timer, fatalErrors));
    }

    /** Returns the first ready result of several; else {@code reason}, or the first's if that is {@code null}. */
    private static CompletionStage<Readiness> any(
            List<CompletableFuture<Readiness>> pending, @Nullable Readiness reason) {
        CompletableFuture<Readiness> any = new CompletableFuture<>();
        AtomicInteger left = new AtomicInteger(pending.size());
        for (CompletableFuture<Readiness> one : pending) {
            CompletableFuture<Void> _ = one.thenAccept(result -> {
                if (result.isReady()) {
                    any.complete(result);
                } else if (left.decrementAndGet() == 0) {
                    any.complete(reason == null ? pending.getFirst().join() : reason);
                }
            });
        }
        return any;
    }

    /** Describes why no instance is ready, by the last checks; empty if one is. */
    public String problems() {
        List<Instance> alive = threads.alive();
        boolean isReady = alive.stream()
                .anyMatch(instance -> instance.availability().reason().isEmpty()
                        && instance.readiness().last().isReady());
        return isReady || alive.isEmpty()
                ? ""
                : alive.stream()
                        .map(instance -> instance.name() + " ("
                                + instance.availability()
                                        .reason()
                                        .orElseGet(() ->
                                                instance.readiness().last().reason())
                                + ")")
                        .collect(Collectors.joining(", ", "instances that are not ready: ", ""));
    }
}
