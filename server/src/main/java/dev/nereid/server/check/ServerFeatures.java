package dev.nereid.server.check;

import dev.nereid.server.options.ServerOptions;

/** Optional features of a server that settings of models need. Immutable. */
record ServerFeatures(boolean rateLimited, boolean cached) {
    static ServerFeatures of(ServerOptions options) {
        return new ServerFeatures(
                options.scheduling().rateLimit().isPresent(),
                options.scheduling().cache().isPresent());
    }
}
