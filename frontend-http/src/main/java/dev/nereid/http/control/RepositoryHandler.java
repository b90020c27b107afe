package dev.nereid.http.control;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.Quoted;
import dev.nereid.http.body.BodyLimits;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.DiscardedBody;
import dev.nereid.http.body.EventLoopExecutor;
import dev.nereid.http.body.JsonBodyReceiver;
import dev.nereid.http.body.RequestFailures;
import dev.nereid.http.json.JsonFields;
import dev.nereid.spi.ErrorCode;
import io.vertx.core.Context;
import io.vertx.core.Future;
import io.vertx.core.http.HttpServerRequest;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;

/** Handles model repository requests: index, load and unload. Confined to one event loop. */
public final class RepositoryHandler {
    private final InferenceServer server;
    private final BodyLimits limits;
    private final Context context;

    /** Creates the handler of one event loop. */
    public RepositoryHandler(InferenceServer server, BodyLimits limits, Context context) {
        this.server = server;
        this.limits = limits;
        this.context = context;
    }

    public void index(HttpServerRequest request) {
        receive(request, body -> {
            boolean isReadyOnly = ControlRequests.readyOnly(body);
            return () -> sendIndex(request, isReadyOnly);
        });
    }

    /** Loads a model, and responds when it is loaded. */
    public void load(HttpServerRequest request, String model) {
        if (checkName(request, model)) {
            receive(request, body -> {
                ModelControl.Load load = ControlRequests.load(model, body);
                return () -> respondWhenDone(request, server.control().load(load));
            });
        }
    }

    /** Unloads a model, and responds when it is unloaded. */
    public void unload(HttpServerRequest request, String model) {
        if (checkName(request, model)) {
            receive(request, body -> {
                boolean withDependents = ControlRequests.unloadDependents(body);
                return () -> respondWhenDone(request, server.control().unload(model, withDependents));
            });
        }
    }

    public void refuseRepositoryName(HttpServerRequest request, String model) {
        refuse(
                request,
                model,
                new InferenceException(ErrorCode.UNSUPPORTED, "'repository_name' specification is not supported"));
    }

    private boolean checkName(HttpServerRequest request, String model) {
        if (model.equals("..")) {
            refuse(
                    request,
                    model,
                    JsonFields.invalid("invalid model name '" + model
                            + "', model name must not contain path traversal characters"));
            return false;
        }
        return true;
    }

    private void refuse(HttpServerRequest request, String model, InferenceException error) {
        DiscardedBody.refuse(
                request, RequestFailures.refuse(server, "", Quoted.text(model), error), ContentTypes.JSON, limits);
    }

    /** Receives a body; the reader returns what the event loop does next. */
    private void receive(HttpServerRequest request, Function<MemorySegment, Runnable> reader) {
        JsonBodyReceiver.receive(
                request,
                server,
                limits,
                new EventLoopExecutor(context),
                body -> JsonBodyReceiver.Prepared.of(reader.apply(body)));
    }

    private void respondWhenDone(HttpServerRequest request, CompletionStage<Void> outcome) {
        JsonResponses.sendWhenDone(
                request, Future.fromCompletionStage(outcome, context).mapEmpty());
    }

    private void sendIndex(HttpServerRequest request, boolean isReadyOnly) {
        Future.fromCompletionStage(server.control().index(), context)
                .onSuccess(models ->
                        JsonResponses.sendFromWorker(request, context, json -> writeIndex(json, models, isReadyOnly)))
                .onFailure(failure -> JsonResponses.sendWhenDone(request, Future.failedFuture(failure)));
    }

    private static void writeIndex(JsonGenerator json, List<ModelStatus> models, boolean isReadyOnly)
            throws IOException {
        json.writeStartArray();
        for (ModelStatus model : models) {
            if (!isReadyOnly || model.state() == ModelStatus.State.READY) {
                write(json, model);
            }
        }
        json.writeEndArray();
    }

    /** Writes a version; only the name of a model that was never loaded. */
    private static void write(JsonGenerator json, ModelStatus model) throws IOException {
        json.writeStartObject();
        JsonResponses.writeString(json, "name", model.name());
        if (model.version().isPresent()) {
            json.writeStringField("version", Long.toString(model.version().getAsLong()));
        }
        if (model.version().isPresent() || model.state() != ModelStatus.State.UNKNOWN) {
            json.writeStringField("state", model.state().name());
        }
        if (!model.reason().isEmpty()) {
            JsonResponses.writeString(json, "reason", model.reason());
        }
        json.writeEndObject();
    }
}
