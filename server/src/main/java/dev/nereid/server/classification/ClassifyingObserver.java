package dev.nereid.server.classification;

import dev.nereid.api.Cancellation;
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
 * <p>If classes cannot be had the call ends with an error; a decoupled model that has more responses to give is told
 * that nobody wants them, and what it gives meanwhile is given back.
 */
public final class ClassifyingObserver implements ResponseObserver {
    private static final Cancellation PENDING = () -> {};
    private static final Cancellation CANCEL_REQUESTED = () -> {};

    private final Classifier classifier;
    private final List<RequestedOutput> wanted;
    private final ResponseObserver observer;
    private final AtomicReference<Cancellation> cancellation = new AtomicReference<>(PENDING);
    private boolean failed;

    /**
     * Wraps the observer of a call.
     *
     * @param classifier finds the classes
     * @param wanted the outputs of the call
     * @param observer who is told
     */
    public ClassifyingObserver(Classifier classifier, List<RequestedOutput> wanted, ResponseObserver observer) {
        this.classifier = classifier;
        this.wanted = wanted;
        this.observer = observer;
    }

    /**
     * Takes the handle of the call.
     *
     * @param handle what the scheduler returned
     * @return the same
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
            classified = ClassifiedResponse.of(response, classifier, wanted);
        } catch (InferenceException e) {
            fail(response, e);
            return;
        } catch (RuntimeException | InternalError e) { // the latter for shared memory that its owner cut off
            fail(response, new InferenceException(ErrorCode.INTERNAL, "classification failed: " + e));
            return;
        }
        observer.onResponse(classified);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        if (!failed) {
            observer.onFailedResponse(error);
        }
    }

    @Override
    public void onCompleted() {
        if (!failed) {
            observer.onCompleted();
        }
    }

    @Override
    public void onError(InferenceException error) {
        if (!failed) {
            observer.onError(error);
        }
    }

    @Override
    public void onRefused(InferenceException error) {
        observer.onRefused(error);
    }

    private void fail(InferResponse response, InferenceException error) {
        failed = true;
        boolean last = response.isFinal();
        response.close();
        if (!last) {
            cancellation.getAndSet(CANCEL_REQUESTED).cancel();
        }
        observer.onError(error);
    }
}
