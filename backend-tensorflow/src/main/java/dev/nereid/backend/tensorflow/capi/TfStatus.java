package dev.nereid.backend.tensorflow.capi;

import dev.nereid.backend.natives.CStrings;

/** A reusable {@code TF_Status}. Confined to the user of the call that it is passed to; closed by its owner. */
final class TfStatus implements AutoCloseable {
    private final TfApi api;
    private final long handle;

    TfStatus(TfApi api) {
        this.api = api;
        handle = api.create(TfFunction.NewStatus);
    }

    /** Returns the address to pass to a function. */
    long handle() {
        return handle;
    }

    /** Throws what the last function that got the status reported, if it failed. */
    void check() throws TfException {
        int code = api.shortNumber(TfFunction.GetCode, handle);
        if (code != 0) {
            throw new TfException(TfErrorCode.of(code), CStrings.read(api.shortPointer(TfFunction.Message, handle)));
        }
    }

    @Override
    public void close() {
        api.call(TfFunction.DeleteStatus, handle);
    }
}
