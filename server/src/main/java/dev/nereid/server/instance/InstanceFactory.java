package dev.nereid.server.instance;

import dev.nereid.scheduler.instance.Instance;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/** Creates the instances of a model, in parallel if the backend allows it. Confined to the thread that loads. */
public final class InstanceFactory {
    private final Creation creation;
    private final BackendTraits traits;
    private final InstanceOptions options;

    /** Creates one instance. */
    @FunctionalInterface
    public interface Creation {
        /** Creates an instance. Blocks; called by several threads at once if instances are created in parallel. */
        BackendInstance create(InstancePlan plan);
    }

    public InstanceFactory(Creation creation, BackendTraits traits, InstanceOptions options) {
        this.creation = creation;
        this.traits = traits;
        this.options = options;
    }

    /**
     * Creates all instances.
     *
     * @param rollback receives a step for each created instance, also if another fails
     * @return the instances in the order of the plans
     * @throws BackendException the first failure in the order of the plans
     */
    public List<BackendInstance> create(List<InstancePlan> plans, Rollback rollback) {
        int threads = Math.min(plans.size(), options.processors());
        boolean parallel = traits.parallelInstances() || options.parallel();
        return parallel && threads > 1
                ? createInParallel(plans, rollback, threads)
                : createSequentially(plans, rollback);
    }

    private List<BackendInstance> createSequentially(List<InstancePlan> plans, Rollback rollback) {
        List<BackendInstance> created = new ArrayList<>();
        for (InstancePlan plan : plans) {
            BackendInstance instance = create(plan);
            rollback.add(instance::close);
            created.add(instance);
        }
        return created;
    }

    /**
     * Creates an instance, on a thread with its placement if it has one. Threads that the backend starts for it inherit
     * the placement.
     */
    private BackendInstance create(InstancePlan plan) {
        Instance.ThreadPlacement placement = options.hostPolicies().placement(plan.hostPolicy());
        if (placement.equals(Instance.ThreadPlacement.ANYWHERE)) {
            return creation.create(plan);
        }
        List<Future<BackendInstance>> created = new ArrayList<>();
        try (ExecutorService creator = Executors.newSingleThreadExecutor(
                Thread.ofPlatform().name("load/" + plan.name()).factory())) {
            created.add(creator.submit(() -> {
                placement.place();
                return creation.create(plan);
            }));
        }
        try {
            return result(created.getFirst());
        } catch (ExecutionException e) {
            rethrow(e.getCause());
            throw new IllegalStateException("not reached", e);
        }
    }

    private List<BackendInstance> createInParallel(List<InstancePlan> plans, Rollback rollback, int threads) {
        List<Future<BackendInstance>> futures = new ArrayList<>();
        try (ExecutorService creators = Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().name("load/instance-", 0).factory())) {
            for (InstancePlan plan : plans) {
                futures.add(creators.submit(() -> create(plan)));
            }
        } // waits for all of them: every created instance must be registered before one is closed
        Throwable failure = null;
        List<BackendInstance> created = new ArrayList<>();
        for (Future<BackendInstance> future : futures) {
            try {
                BackendInstance instance = result(future);
                rollback.add(instance::close);
                created.add(instance);
            } catch (ExecutionException e) {
                failure = failure == null ? e.getCause() : failure;
            }
        }
        rethrow(failure);
        return created;
    }

    private static BackendInstance result(Future<BackendInstance> future) throws ExecutionException {
        if (future.state() == Future.State.FAILED) {
            throw new ExecutionException(future.exceptionNow());
        }
        return future.resultNow();
    }

    static void rethrow(@Nullable Throwable failure) {
        if (failure instanceof BackendException backendFailure) {
            throw new BackendException(
                    backendFailure.code(), String.valueOf(backendFailure.getMessage()), backendFailure);
        }
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure != null) {
            throw new BackendException(ErrorCode.INTERNAL, "instance could not be created: " + failure, failure);
        }
    }
}
