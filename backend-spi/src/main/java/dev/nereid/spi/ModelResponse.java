package dev.nereid.spi;

import java.util.List;
import java.util.Optional;

/**
 * A response of a model to a {@link ModelRequest}. Owned by its receiver, and closed once, on any thread; confined to one thread at a time.
 * <em>Implemented by the server.</em>
 *
 * <p>A response that is not closed keeps the other model from being unloaded. The server releases it, and logs that
 * once, when the response and its tensors and memory segments are no longer reachable, and with the end of the model
 * that holds it: when that is unloaded and has completed its requests, before its close if the other model waits. A
 * program that embeds the server closes its responses before the server.
 *
 * @since 1.0
 */
public interface ModelResponse extends AutoCloseable {
    /**
     * Returns the id of the request.
     *
     * @return the id that was set, or else that of the causing request; empty for none
     */
    default String id() {
        return "";
    }

    /**
     * Returns the version of the model that responded.
     *
     * @return the version, 0 or more
     */
    long version();

    /**
     * Says whether no further response follows. {@link ModelResponseObserver#onCompleted} follows in any case; a decoupled
     * model may end after a response that was not final.
     *
     * @return {@code true} for the response of a model that is not decoupled, and for that with which a decoupled model
     *     ends
     */
    default boolean isFinal() {
        return true;
    }

    /**
     * Returns the names of the outputs.
     *
     * @return the names in the order of the other model's configuration; immutable
     */
    List<String> outputs();

    /**
     * Returns an output.
     *
     * @param name the name of an output
     * @return the tensor, read only, valid until the response and the last {@linkplain #lease lease} of the output are
     *     closed; empty if the response does not carry it
     */
    Optional<Tensor> output(String name);

    /**
     * Returns an output, or fails with an error that names it.
     *
     * @param name the name of an output
     * @return the tensor, as of {@link #output}
     * @throws BackendException {@link ErrorCode#INTERNAL} if the response does not carry the output
     */
    default Tensor requireOutput(String name) {
        Optional<Tensor> found = output(name);
        if (found.isEmpty()) {
            throw new BackendException(
                    ErrorCode.INTERNAL, "output '" + name + "': not in the response (it has: " + outputs() + ")");
        }
        return found.get();
    }

    /**
     * Keeps an output alive beyond the close of the response. So it can become an output of one's own:
     * {@code mine.put("OUT", theirs.requireOutput("OUT"), theirs.lease("OUT"))}.
     *
     * @param name the name of an output of this response
     * @return ends the lease; run once, on any thread
     * @throws IllegalArgumentException if the response does not carry the output
     * @throws IllegalStateException if the response is closed
     */
    Runnable lease(String name);

    /**
     * Returns the parameters of the response.
     *
     * @return the parameters, which stay valid when the response is closed
     */
    Parameters parameters();

    /** Releases the outputs, except those on a lease. Later calls do nothing. */
    @Override
    void close();
}
