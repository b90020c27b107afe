package dev.nereid.server.check;

import dev.nereid.server.options.ServerOptions;

/**
 * Optional features of a server that settings of models need. Immutable.
 *
 * @param rateLimited whether the server has a rate limiter
 * @param cached whether the server has a response cache
 */
record ServerFeatures(boolean rateLimited, boolean cached) {
    /** Returns the features of a server with the given options. */
    static ServerFeatures of(ServerOptions options) {
        return new ServerFeatures(
                options.scheduling().rateLimit().isPresent(),
                options.scheduling().cache().isPresent());
    }
}
