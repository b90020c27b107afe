package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.atomic.LongAdder;

/**
 * Counts refused requests and decides the error code that clients get. Lock-free; safe for use by any thread.
 *
 * <p>Requests that a queue refuses are not counted here: they are among the failures of their models.
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
     * Begins to count.
     *
     * @param clientErrorsAsBadRequest whether mistakes of clients for which the reference server has the code
     *     {@link ErrorCode#INTERNAL} are told with {@link ErrorCode#INVALID_ARGUMENT}
     * @return counters that stand at 0
     */
    public static Refusals counting(boolean clientErrorsAsBadRequest) {
        return new Refusals(true, clientErrorsAsBadRequest);
    }

    /**
     * Counts the refusal of a request.
     *
     * @param protocol how the request came
     * @param error why it is refused
     * @return the error that the client is told
     */
    public InferenceException refuse(RequestProtocol protocol, InferenceException error) {
        count(protocol, error.refusalCause());
        return translate(error);
    }

    /**
     * Returns an error as the client is told it.
     *
     * @param error an error of a request
     * @return the error; with another code if it is a mistake of the client, and the server is to say so
     */
    public InferenceException translate(InferenceException error) {
        return clientErrorsAsBadRequest ? error.asBadRequest() : error;
    }

    /**
     * Returns whether some errors are told with another code.
     *
     * @return whether {@link #translate} may return another error than it is given
     */
    public boolean changesCodes() {
        return clientErrorsAsBadRequest;
    }

    /**
     * Counts the refusal of a request for which there is no error of an inference.
     *
     * @param protocol how the request came
     * @param cause why it is refused
     */
    public void count(RequestProtocol protocol, RefusalCause cause) {
        if (counts) {
            counter(protocol, cause).increment();
        }
    }

    /**
     * Returns how many requests were refused.
     *
     * @param protocol how they came
     * @param cause why they were refused
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
