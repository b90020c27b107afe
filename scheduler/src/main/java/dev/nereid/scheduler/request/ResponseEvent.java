package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.spi.BackendException;

/** A response, failure or end of responses for the observer of one request. */
public interface ResponseEvent {
    /** Tells it. */
    void deliverTo(ResponseObserver observer);

    /** Takes back what the answer holds, instead of telling it. Nothing by default. */
    default void discard() {}

    /**
     * The terminal response of a model that preserves the order of responses.
     *
     * @param event what is told
     */
    record Terminal(ResponseEvent event) implements ResponseEvent {
        @Override
        public void deliverTo(ResponseObserver observer) {
            event.deliverTo(observer);
        }

        @Override
        public void discard() {
            event.discard();
        }
    }

    /**
     * A failed response of a decoupled model that other responses may follow. Immutable.
     *
     * @param error what went wrong
     */
    record FailedResponse(InferenceException error) implements ResponseEvent {
        @Override
        public void deliverTo(ResponseObserver observer) {
            observer.onFailedResponse(error);
        }
    }

    /** The end of the responses of a decoupled model. Immutable. */
    ResponseEvent END = ResponseObserver::onCompleted;

    /**
     * A failure. Immutable.
     *
     * @param error what went wrong
     * @param reason how it is counted
     */
    record Failure(InferenceException error, FailureReason reason) implements ResponseEvent {
        /** Makes a failure of what a backend throws, or might throw. */
        public static Failure of(BackendException error, FailureReason reason) {
            return new Failure(SchedulerErrors.of(error), reason);
        }

        /** Makes the failure of a request for which its server waited as long as it could. */
        public static Failure abandoned(CheckedRequest call) {
            return new Failure(SchedulerErrors.abandoned(call), FailureReason.OTHER);
        }

        @Override
        public void deliverTo(ResponseObserver observer) {
            observer.onError(error);
        }
    }
}
