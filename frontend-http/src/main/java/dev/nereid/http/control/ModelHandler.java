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
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerRequest;
import java.io.IOException;
import java.util.List;

/** Serves a model's metadata, configuration and readiness. Immutable. */
public final class ModelHandler {
    private final ModelCatalog models;

    public ModelHandler(ModelCatalog models) {
        this.models = models;
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

    /** Sends a model's readiness. */
    public void ready(HttpServerRequest request, String name, String version) {
        try {
            if (!models.isReady(ModelRef.parse(name, version))) {
                throw new InferenceException(ErrorCode.INVALID_ARGUMENT, "Model version not ready");
            }
        } catch (InferenceException e) {
            HttpErrors.send(request.response(), e, ContentTypes.TEXT);
            return;
        }
        request.response()
                .putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.TEXT)
                .end();
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
