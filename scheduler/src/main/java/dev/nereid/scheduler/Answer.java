package dev.nereid.scheduler;

import dev.nereid.api.FailureReason;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.BackendException;

/** One thing that an observer is told. */
interface Answer {
    /** Tells it. */
    void tell(ResponseObserver observer);

    /** Takes back what the answer holds, instead of telling it. Nothing by default. */
    default void discard() {}

    /**
     * The last answer to a request of a model that answers in order.
     *
     * @param answer what is told
     */
    record Last(Answer answer) implements Answer {
        @Override
        public void tell(ResponseObserver observer) {
            answer.tell(observer);
        }

        @Override
        public void discard() {
            answer.discard();
        }
    }

    /**
     * A failed response of a decoupled model, after which others may follow. Immutable.
     *
     * @param error what went wrong
     */
    record FailedResponse(InferenceException error) implements Answer {
        @Override
        public void tell(ResponseObserver observer) {
            observer.onFailedResponse(error);
        }
    }

    /** The end of the responses of a decoupled model. Immutable. */
    Answer END = ResponseObserver::onEnd;

    /**
     * A failure. Immutable.
     *
     * @param error what went wrong
     * @param reason how it is counted
     */
    record Failure(InferenceException error, FailureReason reason) implements Answer {
        /** Makes a failure of what a backend throws, or might throw. */
        static Failure of(BackendException error, FailureReason reason) {
            return new Failure(SchedulerErrors.of(error), reason);
        }

        /** Makes the failure of a request for which its server waited as long as it could. */
        static Failure abandoned(CheckedCall call) {
            return new Failure(SchedulerErrors.abandoned(call), FailureReason.OTHER);
        }

        @Override
        public void tell(ResponseObserver observer) {
            observer.onError(error);
        }
    }
}
