package dev.nereid.http;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceServer;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.control.ModelHandler;
import dev.nereid.http.control.RepositoryHandler;
import dev.nereid.http.control.ServerHandler;
import dev.nereid.http.control.SharedMemoryHandler;
import dev.nereid.http.control.StatisticsHandler;
import io.vertx.core.Context;
import io.vertx.core.Handler;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.internal.http.HttpServerRequestInternal;
import io.vertx.core.internal.http.HttpServerRequestWrapper;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import java.net.HttpURLConnection;
import java.util.function.BiConsumer;
import java.util.function.Consumer;

/**
 * Routes all requests but inference to their handlers, with Vert.x Web. Confined to one event loop.
 *
 * <p>Four defaults of Vert.x Web would change responses that clients rely on:
 *
 * <ul>
 *   <li>Paths are matched as received, since {@code %2F} and {@code ..} may be part of a model's name.
 *   <li>Routes are regular expressions without groups: path parameters and groups are decoded, and a path without
 *       expression ignores a slash at its end.
 *   <li>Routes accept every method: access is checked first, then the method.
 *   <li>There is no body handler: bodies lie in tensor memory, and forms are not parsed.
 * </ul>
 */
final class ControlRouter implements Handler<HttpServerRequest> {
    private static final String NAME = "[^/]+";
    private static final String MODEL = "/v2/models/" + NAME + "(?:/versions/(?:[0-9]+|latest))?";

    private final Router router;
    private final AccessCheck access;
    private final BodyLimits limits;

    /** Handles requests for one resource of models. */
    @FunctionalInterface
    private interface ModelAction {
        void handle(HttpServerRequest request, String model, String version);
    }

    /** Creates the router of one event loop. {@code failed} handles exceptions of handlers. */
    ControlRouter(
            InferenceServer server,
            BodyLimits limits,
            Context context,
            AccessCheck access,
            BiConsumer<HttpServerRequest, Throwable> failed) {
        this.access = access;
        this.limits = limits;
        router = Router.router(context.owner());
        addServer(new ServerHandler(server));
        addModels(new ModelHandler(server.models(), context), new StatisticsHandler(server.models(), context));
        addRepository(new RepositoryHandler(server, limits, context));
        addSharedMemory("/v2/systemsharedmemory", new SharedMemoryHandler(server, limits, context, false));
        addSharedMemory("/v2/cudasharedmemory", new SharedMemoryHandler(server, limits, context, true));
        Handler<RoutingContext> unknown = routing -> access.refuseUnknownPath(routing.request());
        router.errorHandler(HttpURLConnection.HTTP_NOT_FOUND, unknown)
                // The request has an empty path.
                .errorHandler(HttpURLConnection.HTTP_BAD_REQUEST, unknown)
                .errorHandler(
                        HttpURLConnection.HTTP_INTERNAL_ERROR,
                        routing -> failed.accept(
                                routing.request(), requireNonNull(routing.failure(), "routing.failure()")));
    }

    @Override
    public void handle(HttpServerRequest request) {
        router.handle(new AnyAuthorityRequest((HttpServerRequestInternal) request));
    }

    /** A request that Vert.x Web accepts without a valid {@code Host} header. */
    private static final class AnyAuthorityRequest extends HttpServerRequestWrapper {
        AnyAuthorityRequest(HttpServerRequestInternal request) {
            super(request);
        }

        @Override
        public boolean isValidAuthority() {
            return true;
        }
    }

    private void addServer(ServerHandler server) {
        addWithoutBody(Resource.LIVE, "/v2/health/live", server::live);
        addWithoutBody(Resource.READY, "/v2/health/ready", server::ready);
        addWithoutBody(Resource.SERVER, "/v2", server::metadata);
    }

    private void addModels(ModelHandler models, StatisticsHandler statistics) {
        // First: it wins over a model of that name. The metadata of such a model is served with its version.
        addWithoutBody(Resource.STATISTICS, "/v2/models/stats", statistics::all);
        addOfModel(Resource.MODEL_READY, "/ready", models::ready);
        addOfModel(Resource.MODEL, "", models::metadata);
        addOfModel(Resource.MODEL_CONFIG, "/config", models::config);
        addOfModel(Resource.STATISTICS, "/stats", statistics::ofModel);
    }

    private void addRepository(RepositoryHandler repository) {
        String model = "/models/" + NAME;
        add(Resource.REPOSITORY, "/v2/repository(?:/" + NAME + ")?/index", repository::index);
        addNamed(Resource.REPOSITORY, "/v2/repository" + model + "/load", "/models", repository::load);
        addNamed(Resource.REPOSITORY, "/v2/repository" + model + "/unload", "/models", repository::unload);
        addNamed(
                Resource.REPOSITORY,
                "/v2/repository/" + NAME + model + "/(?:load|unload)",
                "/models",
                repository::refuseRepositoryName);
    }

    private void addSharedMemory(String path, SharedMemoryHandler memory) {
        String regions = path + "(?:/region/" + NAME + ")?";
        addNamed(Resource.REGION_STATUS, regions + "/status", "/region", memory::status);
        addNamed(Resource.REGION_CHANGE, regions + "/register", "/region", memory::register);
        addNamed(Resource.REGION_CHANGE, regions + "/unregister", "/region", memory::unregister);
    }

    private void addOfModel(Resource resource, String verb, ModelAction action) {
        addWithoutBody(resource, MODEL + verb, request -> {
            ModelPath path = ModelPath.parse(String.valueOf(request.path())).orElseThrow();
            action.handle(request, path.model(), path.version());
        });
    }

    /** Adds a route with a raw name, which may be absent, between a path segment and a verb at the end of the path. */
    private void addNamed(
            Resource resource, String path, String segment, BiConsumer<HttpServerRequest, String> handler) {
        add(resource, path, request -> handler.accept(request, nameAfter(segment, String.valueOf(request.path()))));
    }

    private static String nameAfter(String segment, String path) {
        int verb = path.lastIndexOf('/');
        int name = path.lastIndexOf('/', verb - 1);
        return path.startsWith(segment, name - segment.length()) ? path.substring(name + 1, verb) : "";
    }

    /** Adds a route with a handler that does not read the body. The response is written at once or later. */
    private void addWithoutBody(Resource resource, String path, Consumer<HttpServerRequest> handler) {
        add(
                resource,
                path,
                request -> DiscardedBody.continueOrAnnounceClose(request, limits, () -> handler.accept(request)));
    }

    private void add(Resource resource, String path, Consumer<HttpServerRequest> handler) {
        router.routeWithRegex(path).useNormalizedPath(false).handler(routing -> {
            HttpServerRequest request = routing.request();
            if (access.admit(request, resource)) {
                handler.accept(request);
            }
        });
    }
}
