package dev.nereid.http.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Quoted;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.body.JsonBodyReceiver;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.Context;
import io.vertx.core.Future;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.lang.foreign.MemorySegment;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Handles model repository requests: index, load and unload. Confined to one event loop. */
public final class RepositoryHandler {
    private static final Logger log = LoggerFactory.getLogger(RepositoryHandler.class);

    private final InferenceServer server;
    private final BodyLimits limits;
    private final Context context;

    /**
     * Creates the handler of one event loop.
     *
     * @param server whose models
     * @param limits the limits
     * @param context the event loop
     */
    public RepositoryHandler(InferenceServer server, BodyLimits limits, Context context) {
        this.server = server;
        this.limits = limits;
        this.context = context;
    }

    /** Waits for the body, and does what is asked. */
    public void handle(HttpServerRequest request, RepositoryPath path) {
        try {
            check(path);
        } catch (InferenceException e) {
            DiscardedBody.refuse(
                    request,
                    RequestFailures.refuse(server, "", Quoted.text(path.model()), e),
                    ContentTypes.JSON,
                    limits);
            return;
        }
        HttpServerResponse response = request.response();
        JsonBodyReceiver.receive(
                request,
                server,
                limits,
                new EventLoopExecutor(context),
                body -> JsonBodyReceiver.Prepared.of(prepare(path, body, response)));
    }

    private static void check(RepositoryPath path) {
        if (path.verb() == RepositoryPath.Verb.INDEX) {
            return;
        }
        if (!path.repository().isEmpty()) {
            throw new InferenceException(ErrorCode.UNSUPPORTED, "'repository_name' specification is not supported");
        }
        if (path.model().equals("..")) {
            throw JsonFields.invalid(
                    "invalid model name '" + path.model() + "', model name must not contain path traversal characters");
        }
    }

    /** Reads what is asked, and returns how to do it. */
    private Runnable prepare(RepositoryPath path, MemorySegment body, HttpServerResponse response) {
        String model = path.model();
        return switch (path.verb()) {
            case INDEX -> {
                boolean readyOnly = ControlRequests.readyOnly(body);
                yield () -> sendIndex(response, readyOnly);
            }
            case LOAD -> {
                ModelControl.Load load = ControlRequests.load(model, body);
                yield () -> respondWhenDone(server.control().load(load), model, response);
            }
            case UNLOAD -> {
                boolean dependents = ControlRequests.unloadDependents(body);
                yield () -> respondWhenDone(server.control().unload(model, dependents), model, response);
            }
        };
    }

    /** Answers when the server is done, back on the event loop. */
    private void respondWhenDone(CompletionStage<Void> outcome, String model, HttpServerResponse response) {
        Future.fromCompletionStage(outcome, context).onComplete(done -> {
            if (done.succeeded()) {
                sendEmpty(response);
                return;
            }
            Throwable cause = done.cause();
            Throwable failure =
                    cause instanceof CompletionException && cause.getCause() != null ? cause.getCause() : cause;
            if (failure instanceof InferenceException error) {
                HttpErrors.send(response, error, ContentTypes.JSON);
            } else {
                log.atError().addKeyValue("model", model).setCause(failure).log("model not controlled");
                HttpErrors.sendInternal(response);
            }
        });
    }

    private void sendIndex(HttpServerResponse response, boolean readyOnly) {
        WorkerResponse.send(response, () -> index(readyOnly));
    }

    private byte[] index(boolean readyOnly) {
        JsonWriter json = new JsonWriter();
        String separator = "[";
        for (ModelStatus model : server.models().index()) {
            if (!readyOnly || model.state() == ModelStatus.State.READY) {
                json.raw(separator);
                write(json, model);
                separator = ",";
            }
        }
        return json.raw(separator.equals("[") ? "[]" : "]").toByteArray();
    }

    /** Writes a version; of a model that was never loaded, the name is all there is to say. */
    private static void write(JsonWriter json, ModelStatus model) {
        json.raw("{\"name\":").string(model.name());
        if (model.version().isPresent()) {
            json.raw(",\"version\":\"").integer(model.version().getAsLong()).raw("\"");
        }
        if (model.version().isPresent() || model.state() != ModelStatus.State.UNKNOWN) {
            json.raw(",\"state\":").string(model.state().name());
        }
        if (!model.reason().isEmpty()) {
            json.raw(",\"reason\":").string(model.reason());
        }
        json.raw("}");
    }

    private static void sendEmpty(HttpServerResponse response) {
        if (!response.ended() && !response.closed()) {
            response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON).end();
        }
    }
}
