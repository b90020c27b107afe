package dev.nereid.http;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.frontend.DirectMappedCache;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.generate.GenerateHandler;
import dev.nereid.http.infer.InferHandler;
import dev.nereid.http.json.JsonMemoryLimiter;
import io.vertx.core.Context;
import io.vertx.core.Handler;
import io.vertx.core.http.HttpServerRequest;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Dispatches inference requests to their handlers and all others to the router. Confined to one event loop.
 *
 * <p>Paths are matched as received: an encoded slash is part of a model's name.
 */
final class Routes implements Handler<HttpServerRequest> {
    private static final Logger LOG = LoggerFactory.getLogger(Routes.class);

    private static final int MAX_CACHED_PATH_LENGTH = 512;

    private final BodyLimits limits;
    private final AccessCheck access;
    private final InferHandler infer;
    private final GenerateHandler generate;
    private final ControlRouter control;
    /** Parsed paths of recent inference requests. */
    private final DirectMappedCache<InferencePath> pathCache = new DirectMappedCache<>();

    /** Creates the routes of one event loop, on that loop. {@code jsonMemory} limits the memory of large JSON texts. */
    Routes(InferenceServer server, HttpOptions options, Context context, JsonMemoryLimiter jsonMemory) {
        limits = options.bodyLimits();
        access = new AccessCheck(server, options);
        infer = new InferHandler(server, limits, options.forwardedHeaders(), context, jsonMemory);
        generate = new GenerateHandler(server, limits, options.forwardedHeaders(), context, jsonMemory);
        control = new ControlRouter(server, limits, context, access, this::fail);
    }

    @Override
    public void handle(HttpServerRequest request) {
        try {
            if (!handleInference(request)) {
                control.handle(request);
            }
        } catch (RuntimeException | Error e) {
            fail(request, e);
        }
    }

    /** Handles a request if its path is one of an inference. The router would cost an eighth of a small inference. */
    private boolean handleInference(HttpServerRequest request) {
        String path = request.path();
        if (path == null) {
            return false;
        }
        InferencePath inference = pathCache.get(path.hashCode());
        if (inference == null || !inference.path.equals(path)) {
            inference = InferencePath.parse(path);
            if (inference == null) {
                return false;
            }
        }
        if (access.admit(request, inference.resource)) {
            if (path.length() <= MAX_CACHED_PATH_LENGTH) {
                pathCache.put(path.hashCode(), inference);
            }
            handle(request, inference);
        }
        return true;
    }

    private void handle(HttpServerRequest request, InferencePath path) {
        String model = path.model.model();
        String version = path.model.version();
        if (path.resource == Resource.INFER) {
            infer.handle(request, model, version);
        } else if (path.resource == Resource.GENERATE) {
            generate.generate(request, model, version);
        } else {
            generate.generateStream(request, model, version);
        }
    }

    private void fail(HttpServerRequest request, Throwable failure) {
        LOG.atError().addKeyValue("path", request.path()).setCause(failure).log("request not handled");
        HttpErrors.sendInternal(request);
        DiscardedBody.discard(request, limits);
    }

    /** A path of inference requests and its parts. Immutable. */
    private record InferencePath(String path, ModelPath model, Resource resource) {
        static @Nullable InferencePath parse(String path) {
            return ModelPath.parse(path)
                    .flatMap(model -> resource(model.verb()).map(resource -> new InferencePath(path, model, resource)))
                    .orElse(null);
        }

        private static Optional<Resource> resource(String verb) {
            return switch (verb) {
                case "infer" -> Optional.of(Resource.INFER);
                case "generate" -> Optional.of(Resource.GENERATE);
                case "generate_stream" -> Optional.of(Resource.GENERATE_STREAM);
                default -> Optional.empty();
            };
        }
    }
}
