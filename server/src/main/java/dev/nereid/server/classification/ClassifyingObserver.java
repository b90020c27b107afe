package dev.nereid.server.classification;

import dev.nereid.api.Cancellation;
import dev.nereid.api.ForwardingObserver;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;

/**
 * Classifies responses before it passes them on to the observer of the request. Called by one thread at a time, as
 * observers are.
 *
 * <p>If classes cannot be computed, the request ends with an error; a request to a decoupled model is cancelled, and
 * its further responses are closed.
 */
public final class ClassifyingObserver extends ForwardingObserver {
    private static final Cancellation PENDING = () -> {};
    private static final Cancellation CANCEL_REQUESTED = () -> {};

    private final Classifier classifier;
    private final List<RequestedOutput> requested;
    private final AtomicReference<Cancellation> cancellation = new AtomicReference<>(PENDING);
    private boolean failed;

    /**
     * Wraps the observer of a request.
     *
     * @param classifier computes the classes
     * @param observer notified of the outcome
     */
    public ClassifyingObserver(Classifier classifier, List<RequestedOutput> requested, ResponseObserver observer) {
        super(observer);
        this.classifier = classifier;
        this.requested = requested;
    }

    /**
     * Receives the handle of the request.
     *
     * @param handle the scheduler's handle
     * @return the same handle
     */
    public Cancellation attach(Cancellation handle) {
        if (!cancellation.compareAndSet(PENDING, handle)) {
            handle.cancel(); // failed meanwhile
        }
        return handle;
    }

    @Override
    public void onResponse(InferResponse response) {
        if (failed) {
            response.close();
            return;
        }
        InferResponse classified;
        try {
            classified = ClassifiedResponse.of(response, classifier, requested);
        } catch (InferenceException e) {
            fail(response, e);
            return;
        } catch (RuntimeException | InternalError e) { // the latter for shared memory that its owner cut off
            fail(response, new InferenceException(ErrorCode.INTERNAL, "classification failed: " + e));
            return;
        }
        super.onResponse(classified);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        if (!failed) {
            super.onFailedResponse(error);
        }
    }

    @Override
    public void onCompleted() {
        if (!failed) {
            super.onCompleted();
        }
    }

    @Override
    public void onError(InferenceException error) {
        if (!failed) {
            super.onError(error);
        }
    }

    @Override
    public boolean isLong() {
        return true;
    }

    private void fail(InferResponse response, InferenceException error) {
        failed = true;
        boolean last = response.isFinal();
        response.close();
        if (!last) {
            cancellation.getAndSet(CANCEL_REQUESTED).cancel();
        }
        super.onError(error);
    }
}
