package dev.nereid.grpc;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;

/** What a stream is to say of one of its requests. */
sealed interface Outgoing {
    /** Says whether nothing follows of this request. */
    boolean isLast();

    /** Returns how much pooled memory is held until it is said. */
    long byteSize();

    /**
     * A response. Owned by whoever holds it.
     *
     * @param response the response
     * @param isLast whether it ends the request
     * @param byteSize the size of its outputs
     */
    record Response(InferResponse response, boolean isLast, long byteSize) implements Outgoing {
        /** Wraps a response. */
        static Response of(InferResponse response) {
            long size = 0;
            for (var output : response.outputs()) {
                size += output.tensor().byteSize();
            }
            return new Response(response, response.isLast(), size);
        }
    }

    /**
     * An error, which ends the request. Immutable.
     *
     * @param error the error
     * @param isRefusal whether the request was never asked
     */
    record Failure(InferenceException error, boolean isRefusal) implements Outgoing {
        @Override
        public boolean isLast() {
            return true;
        }

        @Override
        public long byteSize() {
            return 0;
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
