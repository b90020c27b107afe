package dev.nereid.scheduler.admission;

/**
 * Admits requests to a model within the in-flight limits of the model and the server. Lock-free; safe for use by any thread.
 *
 * <p>There are up to four limits: on requests and on bytes, of the model and of the server. A request is checked
 * against all of them before any count changes. So refused requests leave no trace under overload, and a request that
 * fits is not refused because of them. One exception: if two requests race for the rest of one limit, the loser may
 * have been counted in the other limits for a few instructions. No limit is ever exceeded.
 */
public final class RequestAdmission {
    /** The result of an admission check. */
    public enum Verdict {
        /** The request is counted, and has to be removed by {@link RequestAdmission#leave}. */
        ADMITTED,
        /** The limit of requests in flight is reached. */
        TOO_MANY_REQUESTS,
        /** With its bytes, the limit of bytes in flight would be exceeded. */
        TOO_MANY_BYTES
    }

    private static final AdmissionCounts UNLIMITED = new AdmissionCounts(AdmissionLimits.NONE);

    private final AdmissionCounts server;
    private final AdmissionCounts model;

    public RequestAdmission(AdmissionCounts server, AdmissionLimits limits) {
        this.server = server;
        this.model = new AdmissionCounts(limits);
    }

    /** Counts an arriving request of a client, if the limits admit it. */
    public Verdict enter(long bytes) {
        return enter(bytes, false);
    }

    /**
     * Counts an arriving request, if the limits admit it.
     *
     * @param isPart whether it is part of a request that the limits of the server have admitted. These limits do not
     *     count it, so that overload does not refuse the rest of a request that has begun
     */
    public Verdict enter(long bytes, boolean isPart) {
        return enter(bytes, isPart ? UNLIMITED : server);
    }

    private Verdict enter(long bytes, AdmissionCounts outer) {
        if (!model.requests.fits(1) || !outer.requests.fits(1)) {
            return Verdict.TOO_MANY_REQUESTS;
        }
        if (!model.bytes.fits(bytes) || !outer.bytes.fits(bytes) || !model.bytes.tryAdd(bytes)) {
            return Verdict.TOO_MANY_BYTES;
        }
        if (!outer.bytes.tryAdd(bytes)) {
            model.bytes.subtract(bytes);
            return Verdict.TOO_MANY_BYTES;
        }
        if (!model.requests.tryAdd(1)) {
            subtractBytes(bytes, outer);
            return Verdict.TOO_MANY_REQUESTS;
        }
        if (!outer.requests.tryAdd(1)) {
            model.requests.subtract(1);
            subtractBytes(bytes, outer);
            return Verdict.TOO_MANY_REQUESTS;
        }
        return Verdict.ADMITTED;
    }

    /** Removes an admitted request of a client from the load, as {@link #leave(long, boolean)} does. */
    public void leave(long bytes) {
        leave(bytes, false);
    }

    /**
     * Removes an admitted request from the load, with the arguments with which it {@linkplain #enter entered}. It is
     * completed, its responses are closed, its memory is released.
     */
    public void leave(long bytes, boolean isPart) {
        AdmissionCounts counted = isPart ? UNLIMITED : server;
        counted.requests.subtract(1);
        model.requests.subtract(1);
        subtractBytes(bytes, counted);
    }

    private void subtractBytes(long bytes, AdmissionCounts outer) {
        outer.bytes.subtract(bytes);
        model.bytes.subtract(bytes);
    }

    /** Returns the number of the model's requests in flight; 0 unless it is limited. */
    long requests() {
        return model.requests.count();
    }

    /** Returns the input bytes of the model's requests in flight. It is 0 unless they are limited. */
    long bytes() {
        return model.bytes.count();
    }
}
