package dev.nereid.http;

import dev.nereid.api.RefusalCause;
import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.control.ModelHandler;
import dev.nereid.http.control.RepositoryHandler;
import dev.nereid.http.control.RepositoryPath;
import dev.nereid.http.control.ServerHandler;
import dev.nereid.http.control.SharedMemoryHandler;
import dev.nereid.http.control.SharedMemoryPath;
import dev.nereid.http.control.StatisticsHandler;
import dev.nereid.http.generate.GenerateHandler;
import dev.nereid.http.infer.InferHandler;
import io.vertx.core.Handler;
import io.vertx.core.http.HttpMethod;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.net.HttpURLConnection;
import java.util.Optional;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Dispatches HTTP requests to handlers by their raw path, and checks access. Confined to one event loop.
 *
 * <p>Paths are matched as they were sent: clients that encode a slash mean a model with that very name.
 */
final class Routes implements Handler<HttpServerRequest> {
    /** Wins over a model of that name, which can be asked for with its version. */
    private static final String ALL_STATISTICS_PATH = "/v2/models/stats";

    /** A power of two. */
    private static final int MAX_CACHED_PATHS = 64;

    private static final int MAX_CACHED_PATH_LENGTH = 512;

    private final BodyLimits limits;
    private final ApiAccess access;
    private final Handlers handlers;
    /** Paths of inferences that came lately: few are asked for, over and over. */
    private final @Nullable CachedPath[] pathCache = new CachedPath[MAX_CACHED_PATHS];

    /**
     * Handlers of one event loop. Immutable.
     *
     * @param server tells of the server
     * @param models tells of models
     * @param statistics tells what models have done
     * @param infer infers
     * @param generate infers too, in the form of text generators
     * @param repository loads and unloads models
     * @param sharedMemory registers shared memory
     */
    record Handlers(
            ServerHandler server,
            ModelHandler models,
            StatisticsHandler statistics,
            InferHandler infer,
            GenerateHandler generate,
            RepositoryHandler repository,
            SharedMemoryHandler sharedMemory) {}

    Routes(HttpOptions options, Handlers handlers) {
        this.limits = options.bodyLimits();
        this.access = options.security().access();
        this.handlers = handlers;
    }

    /**
     * Takes a request if it asks for an inference. Asked before the router, whose price is an eighth of a small
     * inference.
     *
     * @return whether the request was taken
     */
    boolean handleInfer(HttpServerRequest request) {
        String path = request.path();
        if (path == null || !path.endsWith("/infer") || !request.method().equals(HttpMethod.POST)) {
            return false;
        }
        int place = (path.hashCode() ^ path.hashCode() >>> 16) & MAX_CACHED_PATHS - 1;
        CachedPath known = pathCache[place];
        if (known == null || !known.path.equals(path)) {
            Optional<ModelPath> model = ModelPath.parse(path);
            if (model.isEmpty() || !model.get().verb().equals("infer")) {
                return false;
            }
            known = new CachedPath(path, model.get());
        }
        if (isAllowed(request, Resource.INFER)) {
            if (path.length() <= MAX_CACHED_PATH_LENGTH) {
                pathCache[place] = known;
            }
            handlers.infer().handle(request, known.model.model(), known.model.version());
        }
        return true;
    }

    /** A cached path of an inference request and its parts. Immutable. */
    private record CachedPath(String path, ModelPath model) {}

    @Override
    public void handle(HttpServerRequest request) {
        Optional<Route> route = find(String.valueOf(request.path()));
        if (route.isEmpty()) {
            countRefusal(request, RefusalCause.UNKNOWN_PATH, HttpURLConnection.HTTP_NOT_FOUND);
            DiscardedBody.respondAndDiscard(request, limits, () -> HttpErrors.sendNotFound(request.response()));
        } else if (isAllowed(request, route.get().resource())) {
            route.get().action().accept(request);
        }
    }

    /** Decides, before anything else is done, whether a request may have what it asks for; if not, answers so. */
    private boolean isAllowed(HttpServerRequest request, Resource resource) {
        Optional<String> missing = access.missingHeader(resource.group(), request::getHeader);
        if (missing.isPresent()) {
            countRefusal(request, RefusalCause.RESTRICTED, HttpURLConnection.HTTP_FORBIDDEN);
            DiscardedBody.respondAndDiscard(
                    request, limits, () -> HttpErrors.sendRestricted(request.response(), missing.get()));
            return false;
        }
        if (!request.method().name().equals(resource.method())) {
            countRefusal(request, RefusalCause.UNKNOWN_PATH, HttpURLConnection.HTTP_BAD_METHOD);
            DiscardedBody.respondAndDiscard(
                    request, limits, () -> HttpErrors.sendMethodNotAllowed(request.response(), resource.errorType()));
            return false;
        }
        return true;
    }

    private void countRefusal(HttpServerRequest request, RefusalCause cause, int status) {
        RequestFailures.refuse(handlers.server().server(), String.valueOf(request.path()), cause, status);
    }

    private Optional<Route> find(String path) {
        if (path.equals(ALL_STATISTICS_PATH)) {
            return Optional.of(withoutBody(
                    Resource.STATISTICS, response -> handlers.statistics().all(response)));
        }
        Optional<ModelPath> model = ModelPath.parse(path);
        if (model.isPresent()) {
            return ofModel(model.get());
        }
        Optional<Route> other = RepositoryPath.parse(path)
                .map(repository -> new Route(
                        Resource.REPOSITORY, request -> handlers.repository().handle(request, repository)));
        if (other.isEmpty()) {
            other = SharedMemoryPath.parse(path)
                    .map(region -> new Route(
                            region.verb() == SharedMemoryPath.Verb.STATUS
                                    ? Resource.REGION_STATUS
                                    : Resource.REGION_CHANGE,
                            request -> handlers.sharedMemory().handle(request, region)));
        }
        return other.isPresent() ? other : ofServer(path);
    }

    private Optional<Route> ofServer(String path) {
        ServerHandler server = handlers.server();
        return switch (path) {
            case "/v2" -> Optional.of(withoutBody(Resource.SERVER, server::metadata));
            case "/v2/health/live" -> Optional.of(withoutBody(Resource.LIVE, server::live));
            case "/v2/health/ready" -> Optional.of(withoutBody(Resource.READY, server::ready));
            default -> Optional.empty();
        };
    }

    private Optional<Route> ofModel(ModelPath path) {
        ModelHandler models = handlers.models();
        String model = path.model();
        String version = path.version();
        return switch (path.verb()) {
            case "infer" ->
                Optional.of(
                        new Route(Resource.INFER, request -> handlers.infer().handle(request, model, version)));
            case "generate" ->
                Optional.of(new Route(
                        Resource.GENERATE, request -> handlers.generate().generate(request, model, version)));
            case "generate_stream" ->
                Optional.of(new Route(
                        Resource.GENERATE, request -> handlers.generate().generateStream(request, model, version)));
            case "" -> Optional.of(withoutBody(Resource.MODEL, response -> models.metadata(model, version, response)));
            case "config" ->
                Optional.of(withoutBody(Resource.MODEL_CONFIG, response -> models.config(model, version, response)));
            case "stats" ->
                Optional.of(withoutBody(
                        Resource.STATISTICS, response -> handlers.statistics().ofModel(model, version, response)));
            case "ready" ->
                Optional.of(withoutBody(Resource.MODEL_READY, response -> models.ready(model, version, response)));
            default -> Optional.empty();
        };
    }

    /** Makes a route of a response that does not depend on the body; it is written at once or later. */
    private Route withoutBody(Resource resource, Consumer<HttpServerResponse> action) {
        return new Route(
                resource,
                request -> DiscardedBody.continueOrAnnounceClose(
                        request, limits, () -> action.accept(request.response())));
    }
}
