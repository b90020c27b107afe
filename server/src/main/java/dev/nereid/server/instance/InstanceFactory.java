package dev.nereid.server.instance;

import dev.nereid.scheduler.instance.ThreadPlacement;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelInstance;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;

/** Creates the instances of a model, in parallel if the backend allows it. Confined to the thread that loads. */
public final class InstanceFactory {
    private final Model model;
    private final BackendTraits traits;
    private final InstanceOptions options;

    public InstanceFactory(Model model, BackendTraits traits, InstanceOptions options) {
        this.model = model;
        this.traits = traits;
        this.options = options;
    }

    /**
     * Makes all instances.
     *
     * @param plans the instances to be made
     * @param undo gets a step for each instance that was made, also if another fails
     * @return the instances in the order of the plans
     * @throws BackendException the first failure in the order of the plans
     */
    public List<ModelInstance> make(List<InstancePlan> plans, Rollback undo) throws BackendException {
        int threads = Math.min(plans.size(), options.processors());
        boolean atOnce = traits.parallelInstances() || options.parallel();
        return atOnce && threads > 1 ? makeAtOnce(plans, undo, threads) : makeOneByOne(plans, undo);
    }

    private List<ModelInstance> makeOneByOne(List<InstancePlan> plans, Rollback undo) throws BackendException {
        List<ModelInstance> made = new ArrayList<>();
        for (InstancePlan plan : plans) {
            ModelInstance instance = make(plan);
            undo.add(instance::close);
            made.add(instance);
        }
        return made;
    }

    /**
     * Makes an instance; on a thread that runs where the instance's is to run, if that is not anywhere, so that threads
     * which the backend starts for it run there too.
     */
    private ModelInstance make(InstancePlan plan) throws BackendException {
        ThreadPlacement placement = options.hostPolicies().placement(plan.hostPolicy());
        if (placement.equals(ThreadPlacement.ANYWHERE)) {
            return model.newInstance(plan);
        }
        List<Future<ModelInstance>> made = new ArrayList<>();
        try (ExecutorService maker = Executors.newSingleThreadExecutor(
                Thread.ofPlatform().name("load/" + plan.name()).factory())) {
            made.add(maker.submit(() -> {
                placement.place();
                return model.newInstance(plan);
            }));
        }
        try {
            return result(made.getFirst());
        } catch (ExecutionException e) {
            rethrow(e.getCause());
            throw new IllegalStateException("not reached", e);
        }
    }

    private List<ModelInstance> makeAtOnce(List<InstancePlan> plans, Rollback undo, int threads)
            throws BackendException {
        List<Future<ModelInstance>> futures = new ArrayList<>();
        Throwable failure = null;
        try (ExecutorService makers = Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().name("load/instance-", 0).factory())) {
            for (InstancePlan plan : plans) {
                futures.add(makers.submit(() -> make(plan)));
            }
        } catch (RuntimeException | Error e) { // such as no memory for another thread
            failure = e;
        } // waits for all of them: what was made must be known before anything is closed
        List<ModelInstance> made = new ArrayList<>();
        for (Future<ModelInstance> future : futures) {
            try {
                ModelInstance instance = result(future);
                undo.add(instance::close);
                made.add(instance);
            } catch (ExecutionException e) {
                failure = failure == null ? e.getCause() : failure;
            }
        }
        rethrow(failure);
        return made;
    }

    private static ModelInstance result(Future<ModelInstance> future) throws ExecutionException {
        if (future.state() == Future.State.FAILED) {
            throw new ExecutionException(future.exceptionNow());
        }
        return future.resultNow();
    }

    private static void rethrow(@Nullable Throwable failure) throws BackendException {
        if (failure instanceof BackendException known) {
            throw new BackendException(known.code(), String.valueOf(known.getMessage()), known);
        }
        if (failure instanceof Error error) {
            throw error;
        }
        if (failure != null) {
            throw new BackendException(ErrorCode.INTERNAL, "instance could not be made: " + failure, failure);
        }
    }
}
