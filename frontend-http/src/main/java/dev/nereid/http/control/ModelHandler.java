package dev.nereid.http.control;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import io.vertx.core.Context;
import io.vertx.core.Future;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import io.vertx.core.http.HttpServerResponse;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Serves a model's metadata, configuration and readiness. Immutable. */
public final class ModelHandler {
    private static final Logger LOG = LoggerFactory.getLogger(ModelHandler.class);

    private final ModelCatalog models;
    private final Context context;

    /** Creates the handler of one event loop. */
    public ModelHandler(ModelCatalog models, Context context) {
        this.models = models;
        this.context = context;
    }

    /** Sends a model's versions, platform, inputs and outputs. */
    public void metadata(HttpServerRequest request, String name, String version) {
        ModelMetadata model;
        try {
            model = models.metadata(ModelRef.parse(name, version));
        } catch (InferenceException e) {
            HttpErrors.send(request.response(), e, ContentTypes.JSON);
            return;
        }
        JsonResponses.send(request.response(), JsonResponses.write(json -> write(json, model)));
    }

    /** Sends a model's configuration. */
    public void config(HttpServerRequest request, String name, String version) {
        String config;
        try {
            config = models.configJson(ModelRef.parse(name, version));
        } catch (InferenceException e) {
            HttpErrors.send(request.response(), e, ContentTypes.JSON);
            return;
        }
        JsonResponses.send(request.response(), Buffer.buffer(config));
    }

    /** Sends a model's readiness, at once unless an instance has to find out. */
    public void ready(HttpServerRequest request, String name, String version) {
        CompletionStage<ModelCatalog.Readiness> check;
        try {
            check = models.checkReady(ModelRef.parse(name, version));
        } catch (InferenceException e) {
            HttpErrors.send(request.response(), e, ContentTypes.TEXT);
            return;
        }
        Future.fromCompletionStage(check, context)
                .onSuccess(readiness -> sendReady(request.response(), readiness))
                .onFailure(failure -> sendFailure(request, failure));
    }

    private static void sendReady(HttpServerResponse response, ModelCatalog.Readiness readiness) {
        if (hasEnded(response)) {
            return;
        }
        if (readiness.isReady()) {
            response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.TEXT).end();
            return;
        }
        String reason = readiness.reason().isEmpty() ? "" : ": " + readiness.code() + ": " + readiness.reason();
        HttpErrors.send(
                response,
                new InferenceException(ErrorCode.INVALID_ARGUMENT, "Model version not ready" + reason),
                ContentTypes.TEXT);
    }

    private static void sendFailure(HttpServerRequest request, Throwable thrown) {
        Throwable failure =
                thrown instanceof CompletionException && thrown.getCause() != null ? thrown.getCause() : thrown;
        boolean hasEnded = hasEnded(request.response());
        if (!(failure instanceof InferenceException error)) {
            LOG.atError().addKeyValue("path", request.path()).setCause(failure).log("request not handled");
            if (!hasEnded) {
                HttpErrors.sendInternal(request.response());
            }
        } else if (!hasEnded) {
            HttpErrors.send(request.response(), error, ContentTypes.TEXT);
        }
    }

    /** Returns whether the client has left, or has a response, when the check of an instance ends. */
    private static boolean hasEnded(HttpServerResponse response) {
        return response.ended() || response.closed();
    }

    private static void write(JsonGenerator json, ModelMetadata model) throws IOException {
        boolean isBatched = model.maxBatchSize() > 0;
        json.writeStartObject();
        JsonResponses.writeString(json, "name", model.name());
        json.writeArrayFieldStart("versions");
        for (long version : model.versions()) {
            json.writeString(Long.toString(version));
        }
        json.writeEndArray();
        JsonResponses.writeString(json, "platform", model.platform());
        writeTensors(json, "inputs", model.inputs(), isBatched);
        writeTensors(json, "outputs", model.outputs(), isBatched);
        json.writeEndObject();
    }

    private static void writeTensors(JsonGenerator json, String member, List<TensorSpec> tensors, boolean isBatched)
            throws IOException {
        json.writeArrayFieldStart(member);
        for (TensorSpec tensor : tensors) {
            boolean hasBatchDimension = isBatched && !tensor.is(TensorSpec.Trait.SHAPE_TENSOR);
            Shape shape = hasBatchDimension ? tensor.dims().prepend(Shape.VARIABLE) : tensor.dims();
            json.writeStartObject();
            JsonResponses.writeString(json, "name", tensor.name());
            json.writeStringField("datatype", tensor.type().name());
            json.writeFieldName("shape");
            json.writeRawValue(shape.toString());
            json.writeEndObject();
        }
        json.writeEndArray();
    }
}
