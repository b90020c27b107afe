package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.ErrorCode;

/**
 * Options of the protocols: the server's name and its error codes. Immutable.
 *
 * @param serverId the name in the server's metadata
 * @param clientErrorsAsBadRequest whether client errors that the reference server reports as its own, such as malformed
 *     JSON, have {@link ErrorCode#INVALID_ARGUMENT}; if not, they have {@link ErrorCode#INTERNAL} as there
 */
public record ProtocolOptions(String serverId, boolean clientErrorsAsBadRequest) {
    /** The defaults of the command line. */
    public static final ProtocolOptions DEFAULT = new ProtocolOptions("nereid", false);

    /** Checks the components. */
    public ProtocolOptions {
        requireNonNull(serverId, "serverId");
    }

    /**
     * Replaces the server's name.
     *
     * @param id the name
     * @return the changed options
     */
    public ProtocolOptions withServerId(String id) {
        return new ProtocolOptions(id, clientErrorsAsBadRequest);
    }

    /**
     * Replaces the code of client errors that the reference server reports as its own.
     *
     * @param badRequest {@code true} for {@link ErrorCode#INVALID_ARGUMENT}
     * @return the changed options
     */
    public ProtocolOptions withClientErrorsAsBadRequest(boolean badRequest) {
        return new ProtocolOptions(serverId, badRequest);
    }
}
