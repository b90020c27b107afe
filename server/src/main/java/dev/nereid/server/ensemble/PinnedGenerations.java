package dev.nereid.server.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.ensemble.PinnedModels;
import dev.nereid.scheduler.ensemble.StepModel;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.ServedModel;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** The generations of the steps of one request, with a lease on each. Immutable. */
final class PinnedGenerations implements PinnedModels {
    private static final Logger LOG = LoggerFactory.getLogger(PinnedGenerations.class);

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
            } catch (RuntimeException
                    | Error e) { // such as the end of the stack of the plugin that completed the step before
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
