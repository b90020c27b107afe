package dev.nereid.http.control;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.ServerMetadata;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.json.JsonWriter;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import java.util.List;

/** Serves server metadata, liveness and readiness. Immutable. */
public final class ServerHandler {
    private final InferenceServer server;

    public ServerHandler(InferenceServer server) {
        this.server = server;
    }

    /** Returns the server. */
    public InferenceServer server() {
        return server;
    }

    /** Answers what the server is. */
    public void metadata(HttpServerResponse response) {
        ServerMetadata info = server.metadata();
        JsonWriter json = new JsonWriter();
        json.raw("{\"name\":").string(info.name());
        json.raw(",\"version\":").string(info.version());
        json.raw(",\"extensions\":[");
        List<String> extensions = info.extensions();
        for (int i = 0; i < extensions.size(); i++) {
            json.raw(i == 0 ? "" : ",").string(extensions.get(i));
        }
        json.raw("]}");
        response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON).end(Buffer.buffer(json.toByteArray()));
    }

    /** Answers whether the server runs. */
    public void live(HttpServerResponse response) {
        sendHealth(response, server.isLive());
    }

    /** Answers whether the server can serve. */
    public void ready(HttpServerResponse response) {
        sendHealth(response, server.isReady());
    }

    private void sendHealth(HttpServerResponse response, boolean good) {
        if (server.isExiting()) {
            HttpErrors.sendExiting(response);
        } else {
            HttpErrors.sendHealth(response, good);
        }
    }
}
