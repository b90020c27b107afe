package dev.nereid.http;

import dev.nereid.api.InferenceServer;
import io.vertx.core.Handler;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.util.Optional;

/**
 * Finds the handler of a request. Confined to one event loop.
 *
 * <p>Paths are matched as they were sent: clients that encode a slash mean a model with that very name.
 */
final class Routes implements Handler<HttpServerRequest> {
    private final ServerHandler server;
    private final ModelHandler models;
    private final InferHandler infer;

    Routes(InferenceServer server, InferHandler infer) {
        this.server = new ServerHandler(server);
        this.models = new ModelHandler(server.models());
        this.infer = infer;
    }

    /**
     * Takes a request if it asks for an inference. Asked before the router, whose price is an eighth of a small
     * inference.
     *
     * @return whether the request was taken
     */
    boolean takeInference(HttpServerRequest request) {
        String path = request.path();
        if (path == null || !path.endsWith("/infer") || !request.method().equals(HttpMethod.POST)) {
            return false;
        }
        Optional<ModelPath> model = ModelPath.parse(path);
        if (model.isEmpty() || !model.get().verb().equals("infer")) {
            return false;
        }
        infer.handle(request, model.get());
        return true;
    }

    @Override
    public void handle(HttpServerRequest request) {
        String path = request.path();
        Optional<ModelPath> model = path == null ? Optional.empty() : ModelPath.parse(path);
        if (model.isPresent()) {
            handleModel(request, model.get());
        } else {
            handleServer(request, String.valueOf(path));
        }
    }

    private void handleServer(HttpServerRequest request, String path) {
        HttpServerResponse response = request.response();
        switch (path) {
            case "/v2" -> {
                if (allows(request, HttpMethod.GET, HttpErrors.JSON)) {
                    server.describe(response);
                }
            }
            case "/v2/health/live" -> {
                if (allows(request, HttpMethod.GET, HttpErrors.TEXT)) {
                    server.live(response);
                }
            }
            case "/v2/health/ready" -> {
                if (allows(request, HttpMethod.GET, HttpErrors.TEXT)) {
                    server.ready(response);
                }
            }
            default -> HttpErrors.sendNotFound(response);
        }
    }

    private void handleModel(HttpServerRequest request, ModelPath path) {
        HttpServerResponse response = request.response();
        switch (path.verb()) {
            case "infer" -> {
                if (allows(request, HttpMethod.POST, HttpErrors.TEXT)) {
                    infer.handle(request, path);
                }
            }
            case "" -> {
                if (allows(request, HttpMethod.GET, HttpErrors.JSON)) {
                    models.describe(path, response);
                }
            }
            case "config" -> {
                if (allows(request, HttpMethod.GET, HttpErrors.JSON)) {
                    models.config(path, response);
                }
            }
            case "ready" -> {
                if (allows(request, HttpMethod.GET, HttpErrors.TEXT)) {
                    models.ready(path, response);
                }
            }
            default -> HttpErrors.sendNotFound(response);
        }
    }

    /** Says whether a path may be asked with the request's method; if not, answers so. */
    private static boolean allows(HttpServerRequest request, HttpMethod method, CharSequence errorType) {
        if (request.method().equals(method)) {
            return true;
        }
        HttpErrors.sendMethodNotAllowed(request.response(), errorType);
        return false;
    }
}
