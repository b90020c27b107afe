package dev.nereid.server.repository;

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

/** Makes the instances of a model, several at a time if its backend allows that. Confined to the thread that loads. */
final class InstanceFactory {
    private final Model model;
    private final BackendTraits traits;
    private final int processors;

    InstanceFactory(Model model, BackendTraits traits, int processors) {
        this.model = model;
        this.traits = traits;
        this.processors = processors;
    }

    /**
     * Makes all instances.
     *
     * @param plans the instances to be made
     * @param undo gets a step for each instance that was made, also if another fails
     * @return the instances in the order of the plans
     * @throws BackendException the first failure in the order of the plans
     */
    List<ModelInstance> make(List<InstancePlan> plans, Undo undo) throws BackendException {
        int threads = Math.min(plans.size(), processors);
        return traits.parallelInstances() && threads > 1 ? makeAtOnce(plans, undo, threads) : makeOneByOne(plans, undo);
    }

    private List<ModelInstance> makeOneByOne(List<InstancePlan> plans, Undo undo) throws BackendException {
        List<ModelInstance> made = new ArrayList<>();
        for (InstancePlan plan : plans) {
            ModelInstance instance = model.newInstance(plan);
            undo.add(instance::close);
            made.add(instance);
        }
        return made;
    }

    private List<ModelInstance> makeAtOnce(List<InstancePlan> plans, Undo undo, int threads) throws BackendException {
        List<Future<ModelInstance>> futures = new ArrayList<>();
        Throwable failure = null;
        try (ExecutorService makers = Executors.newFixedThreadPool(
                threads, Thread.ofPlatform().name("load/instance-", 0).factory())) {
            for (InstancePlan plan : plans) {
                futures.add(makers.submit(() -> model.newInstance(plan)));
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
