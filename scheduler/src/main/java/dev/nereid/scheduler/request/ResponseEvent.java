package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.spi.BackendException;

/** A response, failure or end of responses for the observer of one request. */
public interface ResponseEvent {
    void deliverTo(ResponseObserver observer);

    /** Releases the resources of an event that is not delivered. Does nothing by default. */
    default void discard() {}

    /** The terminal response, failure or end of a request to a model that preserves the order of responses. */
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

    /** A failed response of a decoupled model that other responses may follow. Immutable. */
    record FailedResponse(InferenceException error) implements ResponseEvent {
        @Override
        public void deliverTo(ResponseObserver observer) {
            observer.onFailedResponse(error);
        }
    }

    /** The end of the responses of a decoupled model. Immutable. */
    ResponseEvent END = ResponseObserver::onCompleted;

    /** A failure, and how it is counted. Immutable. */
    record Failure(InferenceException error, FailureReason reason) implements ResponseEvent {
        public static Failure of(BackendException error, FailureReason reason) {
            return new Failure(SchedulerErrors.of(error), reason);
        }

        /** Creates the failure of a request for which the server stops waiting. */
        public static Failure abandoned(CheckedRequest request) {
            return new Failure(SchedulerErrors.abandoned(request), FailureReason.OTHER);
        }

        @Override
        public void deliverTo(ResponseObserver observer) {
            observer.onError(error);
        }
    }
}
