package dev.nereid.http.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.http.body.ContentTypes;
import dev.nereid.http.body.HttpErrors;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import java.util.List;

/** Serves a model's metadata, configuration and readiness. Immutable. */
public final class ModelHandler {
    private final ModelCatalog models;

    public ModelHandler(ModelCatalog models) {
        this.models = models;
    }

    /** Answers what clients need to know of a model. */
    public void metadata(String name, String version, HttpServerResponse response) {
        ModelMetadata model;
        try {
            model = models.metadata(ModelRef.parse(name, version));
        } catch (InferenceException e) {
            HttpErrors.send(response, e, ContentTypes.JSON);
            return;
        }
        JsonWriter json = new JsonWriter();
        json.raw("{\"name\":").string(model.name()).raw(",\"versions\":[");
        for (int i = 0; i < model.versions().size(); i++) {
            json.raw(i == 0 ? "\"" : ",\"").integer(model.versions().get(i)).raw("\"");
        }
        json.raw("],\"platform\":").string(model.platform());
        writeTensors(json.raw(",\"inputs\":"), model.inputs(), model.maxBatchSize() > 0);
        writeTensors(json.raw(",\"outputs\":"), model.outputs(), model.maxBatchSize() > 0);
        json.raw("}");
        response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON).end(Buffer.buffer(json.toByteArray()));
    }

    /** Answers a model's configuration. */
    public void config(String name, String version, HttpServerResponse response) {
        String config;
        try {
            config = models.configJson(ModelRef.parse(name, version));
        } catch (InferenceException e) {
            HttpErrors.send(response, e, ContentTypes.JSON);
            return;
        }
        response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.JSON).end(Buffer.buffer(config));
    }

    /** Answers whether a model can serve. */
    public void ready(String name, String version, HttpServerResponse response) {
        try {
            if (!models.isReady(ModelRef.parse(name, version))) {
                throw new InferenceException(ErrorCode.INVALID_ARGUMENT, "Model version not ready");
            }
        } catch (InferenceException e) {
            HttpErrors.send(response, e, ContentTypes.TEXT);
            return;
        }
        response.putHeader(HttpHeaders.CONTENT_TYPE, ContentTypes.TEXT).end();
    }

    private static void writeTensors(JsonWriter json, List<TensorSpec> tensors, boolean batched) {
        json.raw("[");
        for (int i = 0; i < tensors.size(); i++) {
            TensorSpec tensor = tensors.get(i);
            boolean leading = batched && !tensor.is(TensorSpec.Trait.SHAPE_TENSOR);
            Shape shape = leading ? tensor.dims().prepend(Shape.VARIABLE) : tensor.dims();
            json.raw(i == 0 ? "{\"name\":" : ",{\"name\":").string(tensor.name());
            json.raw(",\"datatype\":\"").raw(tensor.type().name());
            json.raw("\",\"shape\":").raw(shape.toString()).raw("}");
        }
        json.raw("]");
    }
}
