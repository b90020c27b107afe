package dev.nereid.http;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.RefusalCause;
import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.RequestFailures;
import io.vertx.core.http.HttpServerRequest;
import java.net.HttpURLConnection;
import java.util.Optional;

/** Checks access and method of a request before its handler runs. Immutable. */
final class AccessCheck {
    private final InferenceServer server;
    private final BodyLimits limits;
    private final ApiAccess access;

    /** Creates the check of access restrictions and body limits. The server counts refused requests. */
    AccessCheck(InferenceServer server, HttpOptions options) {
        this.server = server;
        this.limits = options.bodyLimits();
        this.access = options.security().access();
    }

    /**
     * Checks a request for a resource: first its access, then its method. Returns whether the handler may run;
     * otherwise the request is responded to, and its body discarded.
     */
    boolean admit(HttpServerRequest request, Resource resource) {
        Optional<String> missing = access.missingHeader(resource.group(), request::getHeader);
        if (missing.isPresent()) {
            count(request, RefusalCause.RESTRICTED, HttpURLConnection.HTTP_FORBIDDEN);
            DiscardedBody.respondAndDiscard(
                    request, limits, () -> HttpErrors.sendRestricted(request.response(), missing.get()));
            return false;
        }
        if (!request.method().name().equals(resource.method())) {
            count(request, RefusalCause.UNKNOWN_PATH, HttpURLConnection.HTTP_BAD_METHOD);
            DiscardedBody.respondAndDiscard(
                    request, limits, () -> HttpErrors.sendMethodNotAllowed(request.response(), resource.errorType()));
            return false;
        }
        return true;
    }

    /** Responds 404 to a request without a route, and discards its body. */
    void refuseUnknownPath(HttpServerRequest request) {
        count(request, RefusalCause.UNKNOWN_PATH, HttpURLConnection.HTTP_NOT_FOUND);
        DiscardedBody.respondAndDiscard(request, limits, () -> HttpErrors.sendNotFound(request.response()));
    }

    private void count(HttpServerRequest request, RefusalCause cause, int status) {
        RequestFailures.refuse(server, String.valueOf(request.path()), cause, status);
    }
}
