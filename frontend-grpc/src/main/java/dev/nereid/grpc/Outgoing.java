package dev.nereid.grpc;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;

/** What a stream is to say of one of its requests. */
sealed interface Outgoing {
    /** What a response takes besides its outputs. */
    long OVERHEAD = 512;

    /** Says whether nothing follows of this request. */
    boolean isLast();

    /** Returns about how much memory is held until it is said, in bytes; 0 if next to none. */
    long byteSize();

    /**
     * A response. Owned by whoever holds it.
     *
     * @param response the response
     * @param isLast whether it ends the request
     * @param byteSize what it takes, with the outputs that travel
     */
    record Response(InferResponse response, boolean isLast, long byteSize) implements Outgoing {
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
            return new Response(response, response.isLast(), size);
        }
    }

    /**
     * An error, which ends the request unless it is that of one response. Immutable.
     *
     * @param error the error
     * @param isRefusal whether the request was never asked
     * @param isLast whether it ends the request
     */
    record Failure(InferenceException error, boolean isRefusal, boolean isLast) implements Outgoing {
        @Override
        public long byteSize() {
            return isLast ? 0 : OVERHEAD + error.publicMessage().length();
        }
    }

    /**
     * The end of a request without a last response. Immutable.
     *
     * @param isTold whether the client wants to hear of it
     */
    record End(boolean isTold) implements Outgoing {
        @Override
        public boolean isLast() {
            return true;
        }

        @Override
        public long byteSize() {
            return 0;
        }
    }
}
