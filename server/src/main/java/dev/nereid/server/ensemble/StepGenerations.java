package dev.nereid.server.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.call.CallChain;
import dev.nereid.repository.ModelKey;
import dev.nereid.scheduler.ensemble.StepModel;
import dev.nereid.scheduler.ensemble.StepModels;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.server.demand.DemandModels;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.OnDemandModel;
import dev.nereid.server.lifecycle.Resolution;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.request.RequestChecks;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds and keeps the generations that serve an ensemble's steps for a request. Immutable; safe for use by any thread;
 * never blocks.
 */
final class StepGenerations implements StepModels {
    private static final Logger LOG = LoggerFactory.getLogger(StepGenerations.class);
    private final ServedModels models;
    private final CallChain callers;
    private final List<ModelRef> steps;
    private final EnsembleIdentity identity;
    private final Optional<DemandModels> demand;

    /**
     * Creates the models of an ensemble.
     *
     * @param ensemble the key and the version of the ensemble
     * @param identity knows the models of the steps, and identifies their files
     * @param demand loads models that are loaded on demand; empty if none are
     */
    StepGenerations(ServedModels models, ModelRef ensemble, EnsembleIdentity identity, Optional<DemandModels> demand) {
        this.models = models;
        callers = CallChain.NONE.with(ModelKey.name(ensemble.name()));
        this.identity = identity;
        steps = identity.steps();
        this.demand = demand;
    }

    @Override
    public Cancellation acquire(CheckedRequest request, Receiver receiver) {
        StepModels.Pinned pinned;
        try {
            pinned = find(request);
        } catch (InferenceException e) {
            receiver.failed(e);
            return Cancellation.NONE;
        }
        if (pinned != null) {
            receiver.acquired(pinned);
            return Cancellation.NONE;
        }
        return load(request, receiver);
    }

    /** Loads all models, and keeps them loaded until the request has leases on them. */
    private Cancellation load(CheckedRequest request, Receiver receiver) {
        CompletableFuture<Runnable> loads = demand.orElseThrow().acquireForRequest(withNested());
        CompletableFuture<Void> _ = loads.handle((hold, failure) -> {
            if (failure == null) {
                acquired(request, hold, receiver);
            } else {
                receiver.failed(error(failure));
            }
            return null;
        });
        return () -> loads.cancel(false);
    }

    /** Returns the models of all steps. Steps that are ensembles add the models of their steps. */
    private List<String> withNested() {
        return steps.stream()
                .flatMap(step -> models.onDemand().withNeeded(step.name()).stream())
                .distinct()
                .toList();
    }

    private void acquired(CheckedRequest request, Runnable hold, Receiver receiver) {
        StepModels.Pinned pinned;
        try {
            pinned = find(request);
        } catch (InferenceException e) {
            receiver.failed(e);
            return;
        } catch (RuntimeException | Error e) { // such as the end of the stack of the plugin that sent the request
            receiver.failed(new InferenceException(ErrorCode.INTERNAL, "internal error: " + e));
            return;
        } finally {
            hold.run();
        }
        if (pinned == null) {
            receiver.failed(DemandModels.gone(steps.getFirst().name()));
        } else {
            receiver.acquired(pinned);
        }
    }

    private static InferenceException error(Throwable failure) {
        Throwable cause =
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure;
        return cause instanceof InferenceException error
                ? error
                : new InferenceException(ErrorCode.CANCELLED, "request was cancelled");
    }

    /** Acquires leases on all generations; none and {@code null} if one has to be loaded first. */
    private StepModels.@Nullable Pinned find(CheckedRequest request) {
        List<Generation> found = new ArrayList<>(steps.size());
        boolean isComplete = false;
        try {
            for (int i = 0; i < steps.size(); i++) {
                switch (acquire(steps.get(i), request.options())) {
                    case Generation generation -> {
                        found.add(generation);
                        RequestChecks.checkCallers(callers(request), generation.key());
                    }
                    case OnDemandModel _ -> {
                        return null;
                    }
                }
            }
            isComplete = true;
            return new PinnedGenerations(found, identity);
        } finally {
            if (!isComplete) {
                found.forEach(Generation::release);
            }
        }
    }

    /** Finds a generation; a request of a sequence follows that to the one on which it began. */
    private Resolution acquire(ModelRef step, RequestOptions options) {
        return options.sequence().isEmpty()
                ? models.acquire(step)
                : models.acquire(new InferRequest(step, "", List.of(), List.of(), Map.of(), options, () -> {}));
    }

    @Override
    public void cancelSequence(int step, RequestOptions options) {
        try {
            if (acquire(steps.get(step), options) instanceof Generation generation) {
                try {
                    generation.model().scheduler().cancelSequence(options);
                } finally {
                    generation.release();
                }
            }
        } catch (InferenceException _) { // no such model any more, and no sequence
        }
    }

    @Override
    public CallChain callers(CheckedRequest request) {
        CallChain outer = request.options().callers();
        return outer.isEmpty() ? callers : outer.with(callers.models().getFirst());
    }

    @Override
    public String problems() {
        return describe(steps.stream().filter(step -> !leavesReady(step)).toList());
    }

    private static String describe(List<ModelRef> unready) {
        return unready.stream()
                .map(ModelRef::name)
                .collect(Collectors.collectingAndThen(
                        Collectors.joining(", "),
                        names -> names.isEmpty() ? "" : "models of steps that are not ready: " + names));
    }

    private boolean leavesReady(ModelRef step) {
        try {
            return models.leavesReady(step);
        } catch (InferenceException e) {
            return false;
        }
    }

    @Override
    public CompletionStage<Readiness> checkReady() {
        CompletionStage<List<ModelRef>> unready = CompletableFuture.completedStage(List.of());
        for (ModelRef step : steps) {
            CompletionStage<Boolean> check =
                    models.checkReady(step).handle((result, _) -> result != null && result.isReady());
            unready = unready.thenCombine(
                    check,
                    (before, isReady) -> isReady
                            ? before
                            : Stream.concat(before.stream(), Stream.of(step)).toList());
        }
        return unready.thenApply(found ->
                found.isEmpty() ? Readiness.READY : Readiness.notReady(ErrorCode.UNAVAILABLE, describe(found)));
    }

    /** The generations of the steps of one request, with a lease on each. Immutable. */
    private static final class PinnedGenerations implements StepModels.Pinned {
        private final List<Generation> generations;
        private final EnsembleIdentity identity;

        /** Takes over a lease on each generation. */
        PinnedGenerations(List<Generation> generations, EnsembleIdentity identity) {
            this.generations = generations;
            this.identity = identity;
        }

        @Override
        public Optional<String> identity() {
            return identity.of(generations);
        }

        @Override
        public StepModel model(int step) {
            return new Step(generations.get(step));
        }

        @Override
        public void close() {
            generations.forEach(Generation::release);
        }

        /** The model of one step. */
        private record Step(Generation generation) implements StepModel {
            @Override
            public ModelSettings settings() {
                return generation.model().settings();
            }

            @Override
            public boolean needsHostTensors() {
                return generation.model().needsHostTensors();
            }

            @Override
            public Cancellation submit(InferRequest request, ResponseObserver observer) {
                ServedModel model = generation.model();
                long arrivedNanos = System.nanoTime();
                CheckedRequest checked;
                try {
                    generation.used(arrivedNanos);
                    checked = model.check(request, arrivedNanos);
                } catch (RuntimeException | Error e) {
                    // such as the end of the stack of the plugin that completed the step before
                    request.release().run();
                    observer.onRefused(refusal(request, e));
                    return Cancellation.NONE;
                }
                return model.submit(checked, observer);
            }

            private static InferenceException refusal(InferRequest request, Throwable cause) {
                if (cause instanceof InferenceException refusal) {
                    return refusal;
                }
                LOG.atError()
                        .addKeyValue("model", request.model())
                        .setCause(cause)
                        .log("request check failed (model '{}')", request.model());
                return new InferenceException(ErrorCode.INTERNAL, "internal error: " + cause);
            }
        }
    }
}
