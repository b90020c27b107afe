package dev.nereid.backend.python.call;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;

/** The texts of errors of calls. Python adds the called model to texts of refusals. Static functions only. */
final class CallErrors {
    private CallErrors() {}

    /** Returns the text for a model, or a version of it, that is not served. */
    static String notReady(String model) {
        return "Failed for execute the inference request. Model '" + model + "' is not ready.";
    }

    /** Returns the text for a decoupled model that was called for one response; the last quote belongs to the contract. */
    static String decoupled(String model) {
        return "Model " + model
                + " is using the decoupled. The current BLS request call doesn't support models using the decoupled"
                + " transaction policy. Please use 'decoupled=True' argument to the 'exec' or 'async_exec' calls for"
                + " decoupled models.'";
    }

    static String tooManyCalls(int limit) {
        return limit + " calls of models are in progress (expected: fewer, before another one)";
    }

    static String tooManyBytes(long bytes, long limit) {
        return "inputs of calls in progress: " + bytes + " bytes (expected: at most " + limit + ", before another one)";
    }

    static BackendException tooManyWaiting(int count) {
        return new BackendException(
                ErrorCode.UNAVAILABLE,
                count + " responses of a model wait, more than " + (OpenCall.MAX_WAITING_BYTES >> 20)
                        + " MiB (expected: to be taken from the iterator as they come)");
    }
}
