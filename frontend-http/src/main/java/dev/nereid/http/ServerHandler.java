package dev.nereid.http;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.ServerInfo;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import java.util.List;

/** Says what the server is and how it is. Immutable. */
final class ServerHandler {
    private final InferenceServer server;

    ServerHandler(InferenceServer server) {
        this.server = server;
    }

    /** Returns the server. */
    InferenceServer server() {
        return server;
    }

    /** Answers what the server is. */
    void describe(HttpServerResponse response) {
        ServerInfo info = server.info();
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
    void live(HttpServerResponse response) {
        sendHealth(response, server.isLive());
    }

    /** Answers whether the server can serve. */
    void ready(HttpServerResponse response) {
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
