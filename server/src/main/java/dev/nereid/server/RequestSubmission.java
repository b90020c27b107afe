package dev.nereid.server;

import dev.nereid.api.Cancellation;
import dev.nereid.api.ForwardingObserver;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Refusals;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.server.demand.DemandModels;
import dev.nereid.server.demand.Submission;
import dev.nereid.server.health.Health;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.OnDemandModel;
import dev.nereid.server.lifecycle.Resolution;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.server.lifecycle.ServedModels;
import dev.nereid.server.memory.TensorPool;
import dev.nereid.server.request.OwnedStrings;
import dev.nereid.server.request.RequestChecks;
import dev.nereid.spi.ErrorCode;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Submits requests to their models, or holds requests until the models are loaded. Safe for use by any thread; never
 * blocks.
 */
final class RequestSubmission implements Submission {
    private static final Logger LOG = LoggerFactory.getLogger(RequestSubmission.class);

    private final ServedModels models;
    private final Optional<DemandModels> demand;
    private final TensorPool memory;
    private final Refusals refusals;
    private final BooleanSupplier exhausted;
    private volatile boolean closed;
    private volatile boolean closedToClients;

    /**
     * Creates the submission of a server's requests.
     *
     * @param demand lets requests wait for models that are loaded on demand; empty if none are
     * @param memory the pool for copies of what clients could change
     * @param refusals counts refused requests
     * @param exhausted returns whether the server is out of memory, and refuses all requests
     */
    RequestSubmission(
            ServedModels models,
            Optional<DemandModels> demand,
            TensorPool memory,
            Refusals refusals,
            BooleanSupplier exhausted) {
        this.models = models;
        this.demand = demand;
        this.memory = memory;
        this.refusals = refusals;
        this.exhausted = exhausted;
    }

    /** Refuses the requests of clients from now on, but accepts requests of models that execute a request already. */
    void closeToClients() {
        closedToClients = true;
    }

    /** Refuses all requests from now on. */
    void close() {
        closed = true;
    }

    /** Submits a request that has just arrived. It follows earlier requests of its sequence that wait for a load. */
    Cancellation begin(InferRequest request, ResponseObserver observer, long arrivedNanos) {
        Resolution found;
        try {
            found = find(request);
        } catch (InferenceException e) {
            return refused(request, observer, e);
        }
        return switch (found) {
            case OnDemandModel model -> await(model.key(), request, observer, arrivedNanos);
            case Generation generation -> {
                if (request.options().sequence().isPresent() && isWaiting(generation.key())) {
                    generation.release();
                    yield await(generation.key(), request, observer, arrivedNanos);
                }
                yield submit(generation, request, observer, arrivedNanos);
            }
        };
    }

    private boolean isWaiting(String model) {
        return demand.isPresent() && demand.get().isWaiting(model);
    }

    private Cancellation await(String model, InferRequest request, ResponseObserver observer, long arrivedNanos) {
        return demand.orElseThrow().await(model, request, observer, arrivedNanos, this);
    }

    @Override
    public Cancellation submit(InferRequest request, ResponseObserver observer, long arrivedNanos) {
        try {
            return switch (find(request)) {
                case Generation generation -> submit(generation, request, observer, arrivedNanos);
                case OnDemandModel model -> refused(request, observer, DemandModels.gone(model.key()));
            };
        } catch (InferenceException e) {
            return refused(request, observer, e);
        }
    }

    @Override
    public void cancelled(InferRequest request, long arrivedNanos) {
        try {
            if (find(request) instanceof Generation generation) {
                try {
                    generation.model().scheduler().cancelled(request.options(), arrivedNanos);
                    if (models.startsOverReload(request)) {
                        models.startedAgain(request, generation);
                    }
                } finally {
                    generation.release();
                }
            }
        } catch (InferenceException _) { // no such model, and no sequence
        }
    }

    private Resolution find(InferRequest request) {
        if (closed || (closedToClients && request.options().callers().isEmpty())) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready");
        }
        if (exhausted.getAsBoolean()) {
            throw new InferenceException(ErrorCode.UNAVAILABLE, Health.EXHAUSTED);
        }
        return models.acquire(request);
    }

    /** Submits a request to a generation, which is not closed until the request is queued. Releases the lease. */
    private Cancellation submit(
            Generation generation, InferRequest request, ResponseObserver observer, long arrivedNanos) {
        try {
            generation.used(arrivedNanos);
            RequestChecks.checkCallers(request.options().callers(), generation.key());
            ServedModel model = generation.model();
            CheckedRequest checked = check(model, request, observer, arrivedNanos);
            if (checked == null) {
                return Cancellation.NONE;
            }
            if (!models.startsOverReload(request)) {
                return model.submit(checked, observer);
            }
            StartObserver start = new StartObserver(observer, () -> models.startedAgain(request, generation));
            Cancellation cancellation = model.submit(checked, start);
            start.submitted();
            return cancellation;
        } catch (InferenceException e) {
            return refused(request, observer, e);
        } finally {
            generation.release();
        }
    }

    /** Returns a request that is ready for its model; {@code null} if it was refused. */
    private @Nullable CheckedRequest check(
            ServedModel model, InferRequest request, ResponseObserver observer, long arrivedNanos) {
        InferRequest owned = request;
        try {
            owned = OwnedStrings.of(request, memory);
            return model.check(owned, arrivedNanos);
        } catch (InferenceException e) {
            refuse(owned, observer, e);
        } catch (RuntimeException e) {
            LOG.atError()
                    .addKeyValue("model", request.model())
                    .setCause(e)
                    .log("request check failed (model '{}')", request.model());
            refuse(owned, observer, new InferenceException(ErrorCode.INTERNAL, "internal error: " + e));
        }
        return null;
    }

    private Cancellation refused(InferRequest request, ResponseObserver observer, InferenceException error) {
        refuse(request, observer, error);
        return Cancellation.NONE;
    }

    @Override
    public void refuse(InferRequest request, ResponseObserver observer, InferenceException reason) {
        request.release().run();
        try {
            observer.onRefused(refusals.refuse(observer.protocol(), reason));
        } catch (RuntimeException e) {
            LOG.atWarn()
                    .addKeyValue("model", request.model())
                    .setCause(e)
                    .log("observer failed (model '{}')", request.model());
        }
    }

    /**
     * Runs an action once a request that starts a sequence is accepted. The request is accepted when it was submitted, or
     * before its client receives anything but a refusal. Safe for use by any thread.
     */
    private static final class StartObserver extends ForwardingObserver {
        private final Runnable action;

        /** Set when the action has begun, or when the request was refused and the action never runs. */
        private final AtomicBoolean decided = new AtomicBoolean();

        StartObserver(ResponseObserver client, Runnable action) {
            super(client);
            this.action = action;
        }

        /** Runs the action, unless the request was refused. */
        void submitted() {
            if (decided.compareAndSet(false, true)) {
                action.run();
            }
        }

        @Override
        public void onResponse(InferResponse response) {
            submitted();
            super.onResponse(response);
        }

        @Override
        public void onFailedResponse(InferenceException error) {
            submitted();
            super.onFailedResponse(error);
        }

        @Override
        public void onCompleted() {
            submitted();
            super.onCompleted();
        }

        @Override
        public void onError(InferenceException error) {
            submitted();
            super.onError(error);
        }

        @Override
        public void onRefused(InferenceException error) {
            decided.set(true);
            super.onRefused(error);
        }
    }
}
