package dev.nereid.grpc.stream;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.grpc.wire.SharedTensors;

/** A message to be written to a stream for one of its requests. */
sealed interface OutgoingMessage {
    /** The approximate memory of a response besides its outputs. */
    long OVERHEAD = 512;

    /** Says whether this is the last message of its request. */
    boolean isFinal();

    /** Returns the approximate bytes that are held until the message is written. It is 0 for almost none. */
    long byteSize();

    /**
     * A response of the model. Owned by the holder.
     *
     * @param isFinal whether it ends the request
     * @param byteSize its memory with the outputs that are sent
     */
    record Response(InferResponse response, boolean isFinal, long byteSize) implements OutgoingMessage {
        /** Wraps a response. Outputs in shared memory are not sent. */
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
     * An error of the request. Immutable.
     *
     * @param isRefusal whether the request was never submitted
     * @param isFinal whether it ends the request
     */
    record Failure(InferenceException error, boolean isRefusal, boolean isFinal) implements OutgoingMessage {
        @Override
        public long byteSize() {
            return isFinal ? 0 : OVERHEAD + error.publicMessage().length();
        }
    }

    /** The end of a request without a final response. Immutable. */
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
