package dev.nereid.grpc.stream;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.grpc.wire.SharedTensors;

/** A message to be written to a stream for one of its requests. */
sealed interface OutgoingMessage {
    /** What a response takes besides its outputs. */
    long OVERHEAD = 512;

    /** Says whether nothing follows of this request. */
    boolean isFinal();

    /** Returns about how much memory is held until it is said, in bytes; 0 if next to none. */
    long byteSize();

    /**
     * A response of the model. Owned by whoever holds it.
     *
     * @param response the response
     * @param isFinal whether it ends the request
     * @param byteSize what it takes, with the outputs that travel
     */
    record Response(InferResponse response, boolean isFinal, long byteSize) implements OutgoingMessage {
        /**
         * Wraps a response.
         *
         * @param shared which of its outputs do not travel
         */
        static Response of(InferResponse response, SharedTensors shared) {
            long size = OVERHEAD;
            for (var output : response.outputs()) {
                size += shared.outputs().contains(output.name())
                        ? 0
                        : output.tensor().byteSize();
            }
            return new Response(response, response.isFinal(), size);
        }
    }

    /**
     * An error, which ends the request. Immutable.
     *
     * @param error the error
     * @param isRefusal whether the request was never asked
     * @param isFinal whether it ends the request
     */
    record Failure(InferenceException error, boolean isRefusal, boolean isFinal) implements OutgoingMessage {
        @Override
        public long byteSize() {
            return isFinal ? 0 : OVERHEAD + error.publicMessage().length();
        }
    }

    /**
     * The end of a request without a final response. Immutable.
     *
     * @param isSent whether the client wants to hear of it
     */
    record End(boolean isSent) implements OutgoingMessage {
        @Override
        public boolean isFinal() {
            return true;
        }

        @Override
        public long byteSize() {
            return 0;
        }
    }
}
