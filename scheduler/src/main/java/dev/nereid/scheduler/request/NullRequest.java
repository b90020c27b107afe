package dev.nereid.scheduler.request;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.memory.ZeroMemory;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Fills a place of a batch in which no sequence has a request. Immutable except for its request.
 *
 * <p>Its request is like another one of the batch, but belongs to a separate scope: it is counted in the batch size of
 * the statistics alone, and its responses are dropped. Its inputs are zeros, or empty texts. It shares shape tensors
 * with the other request, and keeps that request then. It keeps its memory as long as it lives: a sender of the backend
 * may outlive the execution.
 */
public final class NullRequest implements Executable {
    private static final ResponseObserver DROPPED = new ResponseObserver() {
        @Override
        public void onResponse(InferResponse response) {
            response.close();
        }

        @Override
        public void onCompleted() {}

        @Override
        public void onError(InferenceException error) {}
    };

    private final ModelScope uncounted;
    private final ZeroMemory zeros;
    private final ScheduledRequest request;
    private final List<NamedTensor> added;
    private final @Nullable StateSink states;

    /**
     * Creates a begun request.
     *
     * @param uncounted the scope of null requests: {@link ModelScope#uncounted}
     * @param like another request of the batch, with the shapes for this one; the caller holds a reference to it
     * @param added its control inputs and states, with the names as in the other request
     * @throws dev.nereid.api.InferenceException if there is no memory for zeros, which {@link #reserve} prevents
     */
    public NullRequest(ModelScope uncounted, Executable like, List<NamedTensor> added, ZeroMemory zeros) {
        this.uncounted = uncounted;
        this.zeros = zeros;
        ScheduledRequest owner = like.request();
        CheckedRequest other = owner.checked();
        List<NamedTensor> inputs = owner.inputs();
        boolean shares = sharesShapes(uncounted.settings(), inputs);
        ZeroMemory.Use used = zeros.use(largest(uncounted.settings(), inputs));
        try {
            NamedTensor[] own = new NamedTensor[inputs.size()];
            for (int i = 0; i < own.length; i++) {
                NamedTensor input = inputs.get(i);
                own[i] = isShape(uncounted.settings(), input)
                        ? input
                        : new NamedTensor(input.name(), used.like(input.name(), input.tensor()));
            }
            CheckedRequest checked = new CheckedRequest(
                    other.modelVersion(),
                    "",
                    new RequestInputs(own, other.batchSize(), () -> {
                        used.release();
                        if (shares) {
                            owner.release();
                        }
                    }),
                    RequestOutputs.all(other.outputs().names()),
                    Map.of(),
                    RequestOptions.DEFAULT,
                    other.arrivedNanos());
            this.request = new ScheduledRequest(uncounted, null, checked, DROPPED, other.arrivedNanos());
        } catch (RuntimeException e) {
            used.release();
            throw e;
        }
        this.added = added;
        this.states = like.states();
        request.begin();
        if (shares) {
            owner.keepInputs();
            owner.retain();
        }
    }

    /**
     * Makes room for the zeros of null requests beside a request.
     *
     * @throws dev.nereid.api.InferenceException if there is no memory
     */
    public static void reserve(ZeroMemory zeros, ModelSettings model, CheckedRequest request) {
        zeros.reserve(largest(model, request.inputs()));
    }

    private static long largest(ModelSettings model, List<NamedTensor> inputs) {
        long largest = 0;
        for (int i = 0; i < inputs.size(); i++) {
            NamedTensor input = inputs.get(i);
            if (!isShape(model, input)) {
                largest = Math.max(largest, ZeroMemory.byteSize(input.tensor()));
            }
        }
        return largest;
    }

    private static boolean sharesShapes(ModelSettings model, List<NamedTensor> inputs) {
        for (int i = 0; i < inputs.size(); i++) {
            if (isShape(model, inputs.get(i))) {
                return true;
            }
        }
        return false;
    }

    private static boolean isShape(ModelSettings model, NamedTensor input) {
        Optional<TensorSpec> spec = model.input(input.name());
        return spec.isPresent() && spec.get().is(TensorSpec.Trait.SHAPE_TENSOR);
    }

    @Override
    public ScheduledRequest request() {
        return request;
    }

    @Override
    public List<NamedTensor> added() {
        return added;
    }

    /** Returns the states of the other request; nothing is stored there. */
    @Override
    public @Nullable StateSink states() {
        return states;
    }

    @Override
    public boolean isNull() {
        return true;
    }

    /** Returns another null request for the same place. */
    @Override
    public NullRequest inPlace(Executable like) {
        return new NullRequest(uncounted, like, added, zeros);
    }
}
