package dev.nereid.http.control;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.ServerMetadata;
import dev.nereid.http.body.HttpErrors;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;

/** Serves server metadata, liveness and readiness. Immutable. */
public final class ServerHandler {
    private final InferenceServer server;

    public ServerHandler(InferenceServer server) {
        this.server = server;
    }

    /** Sends the server's name, version and extensions. */
    public void metadata(HttpServerRequest request) {
        ServerMetadata metadata = server.metadata();
        JsonResponses.send(request.response(), JsonResponses.write(json -> {
            json.writeStartObject();
            JsonResponses.writeString(json, "name", metadata.name());
            JsonResponses.writeString(json, "version", metadata.version());
            json.writeArrayFieldStart("extensions");
            for (String extension : metadata.extensions()) {
                JsonResponses.writeString(json, extension);
            }
            json.writeEndArray();
            json.writeEndObject();
        }));
    }

    /** Sends the server's liveness. */
    public void live(HttpServerRequest request) {
        sendHealth(request.response(), server.isLive());
    }

    /** Sends the server's readiness. */
    public void ready(HttpServerRequest request) {
        ready(request, server.isReady());
    }

    /** Sends the server's readiness, which was asked for before, since that may call plugins. */
    public void ready(HttpServerRequest request, boolean isReady) {
        sendHealth(request.response(), isReady);
    }

    private void sendHealth(HttpServerResponse response, boolean isHealthy) {
        if (server.isExiting()) {
            HttpErrors.sendExiting(response);
        } else {
            HttpErrors.sendHealth(response, isHealthy);
        }
    }
}
