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
    public ProtocolOptions {
        requireNonNull(serverId, "serverId");
    }
}
