package dev.nereid.scheduler.request;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Fills a place of a batch in which no sequence has a request. Immutable except for its request.
 *
 * <p>Its request is like another one of the batch, but belongs to a scope of its own: it is not counted anywhere, and
 * its responses are dropped. It keeps the other request and its inputs as long as it lives: a sender of the backend may
 * outlive the execution.
 */
public final class NullRequest implements ExecutionInputs {
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
    private final ScheduledRequest request;
    private final List<NamedTensor> added;
    private final @Nullable StateSink states;

    /**
     * Creates a begun request.
     *
     * @param uncounted the scope of null requests: {@link ModelScope#uncounted}
     * @param like another request of the batch, in whose inputs this one lies; the caller holds a reference to it
     * @param added its control inputs and states, with the names of those of the other
     */
    public NullRequest(ModelScope uncounted, ExecutionInputs like, List<NamedTensor> added) {
        this.uncounted = uncounted;
        ScheduledRequest owner = like.request();
        CheckedRequest other = owner.checked();
        CheckedRequest checked = new CheckedRequest(
                other.modelVersion(),
                "",
                RequestInputs.of(owner.inputs(), other.batchSize(), owner::release),
                RequestOutputs.all(other.outputs().names()),
                Map.of(),
                RequestOptions.DEFAULT,
                other.arrivedNanos());
        this.request = new ScheduledRequest(uncounted, null, checked, DROPPED, other.arrivedNanos());
        this.added = added;
        this.states = like.states();
        request.begin();
        owner.keepInputs(); // last, since nothing can fail from here on
        owner.retain();
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

    /** Returns another one for the same place. */
    @Override
    public NullRequest inPlace(ExecutionInputs like) {
        return new NullRequest(uncounted, like, added);
    }
}
