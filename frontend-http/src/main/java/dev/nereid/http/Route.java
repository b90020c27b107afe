package dev.nereid.http;

import io.vertx.core.http.HttpServerRequest;
import java.util.function.Consumer;

/**
 * The target of a path: a resource and its handler. Immutable.
 *
 * @param resource what is asked
 * @param action answers the request, once it is known to be allowed
 */
record Route(Resource resource, Consumer<HttpServerRequest> action) {}
