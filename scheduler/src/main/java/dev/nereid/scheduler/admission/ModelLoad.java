package dev.nereid.scheduler.admission;

/**
 * Admits requests to a model within its load limits and those of the server. Lock-free; safe for use by any thread.
 *
 * <p>There are up to four bounds: on requests and on bytes, of the model and of the server. A call is held against all
 * of them before any is changed, so that under overload those that are refused leave no trace, and none that would have
 * fitted is refused for their sake. Only where two calls race for the last of something may the one that loses have
 * taken the others for the length of a few instructions. No bound is ever exceeded.
 */
public final class ModelLoad {
    /** The result of an admission check. */
    public enum Verdict {
        /** It was counted, and is to be taken off by {@link ModelLoad#leave}. */
        ADMITTED,
        /** As many requests are in flight as may be. */
        TOO_MANY_REQUESTS,
        /** With its bytes, more would be in flight than may be. */
        TOO_MANY_BYTES
    }

    private final ServerLoad server;
    private final ServerLoad model;

    public ModelLoad(ServerLoad server, LoadLimits limits) {
        this.server = server;
        this.model = new ServerLoad(limits);
    }

    /**
     * Counts a call that comes, if it may.
     *
     * @param bytes the bytes of its inputs
     */
    public Verdict enter(long bytes) {
        if (!model.requests.fits(1) || !server.requests.fits(1)) {
            return Verdict.TOO_MANY_REQUESTS;
        }
        if (!model.bytes.fits(bytes) || !server.bytes.fits(bytes) || !model.bytes.tryAdd(bytes)) {
            return Verdict.TOO_MANY_BYTES;
        }
        if (!server.bytes.tryAdd(bytes)) {
            model.bytes.subtract(bytes);
            return Verdict.TOO_MANY_BYTES;
        }
        if (!model.requests.tryAdd(1)) {
            subtractBytes(bytes);
            return Verdict.TOO_MANY_REQUESTS;
        }
        if (!server.requests.tryAdd(1)) {
            model.requests.subtract(1);
            subtractBytes(bytes);
            return Verdict.TOO_MANY_REQUESTS;
        }
        return Verdict.ADMITTED;
    }

    /** Takes off a call that was admitted: answered, its responses closed, its memory given back. */
    public void leave(long bytes) {
        server.requests.subtract(1);
        model.requests.subtract(1);
        subtractBytes(bytes);
    }

    private void subtractBytes(long bytes) {
        server.bytes.subtract(bytes);
        model.bytes.subtract(bytes);
    }

    /** Returns how many requests of the model are in flight; 0 unless their number is bounded. */
    long requests() {
        return model.requests.count();
    }

    /** Returns how many bytes the inputs of the model's requests in flight have; 0 unless their number is bounded. */
    long bytes() {
        return model.bytes.count();
    }
}
