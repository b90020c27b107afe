package dev.nereid.backend.natives;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;

/** Fails batches with cancelled requests. Stateless. */
public final class Cancellation {
    private Cancellation() {}

    /** Returns whether all requests of a batch are cancelled; in that case all have failed. */
    public static boolean failsAll(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            if (!request.isCancelled()) {
                return false;
            }
        }
        fail(batch);
        return true;
    }

    public static void fail(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            request.fail(new BackendException(ErrorCode.CANCELLED, "request was cancelled"));
        }
    }
}
