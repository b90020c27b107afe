package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts refused requests and decides the error code that clients get. Lock-free; safe for use by any thread.
 *
 * <p>Requests that a queue rejects are not counted here: they are among the failures of their models.
 */
public final class Refusals {
    /** Counts nothing and changes no code: for servers without such figures. */
    public static final Refusals NONE = new Refusals(false, false);

    private final boolean counts;
    private final boolean clientErrorsAsBadRequest;
    private final Map<RequestProtocol, Map<RefusalCause, LongAdder>> counters = new EnumMap<>(RequestProtocol.class);

    private Refusals(boolean counts, boolean clientErrorsAsBadRequest) {
        this.counts = counts;
        this.clientErrorsAsBadRequest = clientErrorsAsBadRequest;
        for (RequestProtocol protocol : RequestProtocol.values()) {
            Map<RefusalCause, LongAdder> causes = new EnumMap<>(RefusalCause.class);
            for (RefusalCause cause : RefusalCause.values()) {
                causes.put(cause, new LongAdder());
            }
            counters.put(protocol, causes);
        }
    }

    /**
     * Creates counters.
     *
     * @param clientErrorsAsBadRequest whether errors of clients for which the reference server has the code
     *     {@link ErrorCode#INTERNAL} get {@link ErrorCode#INVALID_ARGUMENT}
     * @return counters of value 0
     */
    public static Refusals counting(boolean clientErrorsAsBadRequest) {
        return new Refusals(true, clientErrorsAsBadRequest);
    }

    /**
     * Counts the refusal of a request.
     *
     * @param protocol the protocol of the request
     * @param error the error of the request
     * @return the error for the client
     */
    public InferenceException refuse(RequestProtocol protocol, InferenceException error) {
        count(protocol, error.refusalCause());
        return translate(error);
    }

    /**
     * Returns an error as the client gets it.
     *
     * @param error an error of a request
     * @return the error; with another code if it is an error of the client and the server is configured so
     */
    public InferenceException translate(InferenceException error) {
        return clientErrorsAsBadRequest ? error.asBadRequest() : error;
    }

    /**
     * Returns whether some errors get another code.
     *
     * @return whether {@link #translate} may return another error than its argument
     */
    public boolean changesCodes() {
        return clientErrorsAsBadRequest;
    }

    /**
     * Counts the refusal of a request without an {@link InferenceException}.
     *
     * @param protocol the protocol of the request
     * @param cause the cause
     */
    public void count(RequestProtocol protocol, RefusalCause cause) {
        if (counts) {
            counter(protocol, cause).increment();
        }
    }

    /**
     * Returns the number of refused requests.
     *
     * @param protocol their protocol
     * @param cause their cause
     * @return the number since the start of the server
     */
    public long refused(RequestProtocol protocol, RefusalCause cause) {
        return counter(protocol, cause).sum();
    }

    private LongAdder counter(RequestProtocol protocol, RefusalCause cause) {
        Map<RefusalCause, LongAdder> causes = requireNonNull(counters.get(protocol), "protocol");
        return requireNonNull(causes.get(cause), "cause");
    }
}
