package dev.nereid.http.control;

import com.fasterxml.jackson.core.JsonGenerator;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import io.vertx.core.Context;
import io.vertx.core.http.HttpServerRequest;
import java.io.IOException;
import java.util.List;
import java.util.function.Supplier;

/** Serves model statistics, which a worker reads and writes. Immutable. */
public final class StatisticsHandler {
    private final ModelCatalog models;
    private final Context context;

    /** Creates the handler of one event loop. */
    public StatisticsHandler(ModelCatalog models, Context context) {
        this.models = models;
        this.context = context;
    }

    public void all(HttpServerRequest request) {
        send(request, models::statistics);
    }

    /** Sends the statistics of one model, or of one of its versions. */
    public void ofModel(HttpServerRequest request, String name, String version) {
        send(request, () -> models.statistics(ModelRef.parse(name, version)));
    }

    private void send(HttpServerRequest request, Supplier<List<ModelStatistics>> statistics) {
        JsonResponses.sendFromWorker(request, context, json -> write(json, statistics.get()));
    }

    private static void write(JsonGenerator json, List<ModelStatistics> statistics) throws IOException {
        json.writeStartObject();
        json.writeArrayFieldStart("model_stats");
        for (ModelStatistics model : statistics) {
            write(json, model);
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private static void write(JsonGenerator json, ModelStatistics model) throws IOException {
        json.writeStartObject();
        JsonResponses.writeString(json, "name", model.model().name());
        json.writeStringField("version", Long.toString(model.model().version()));
        json.writeNumberField("last_inference", model.executions().lastInferenceMillis());
        json.writeNumberField("inference_count", model.executions().inferenceCount());
        json.writeNumberField("execution_count", model.executions().executionCount());
        write(json, model.inferences());
        json.writeObjectFieldStart("response_stats");
        int index = 0;
        for (ResponseStatistics response : model.responses()) {
            write(json, index++, response);
        }
        json.writeEndObject();
        json.writeArrayFieldStart("batch_stats");
        for (BatchStatistics batch : model.executions().batches()) {
            write(json, batch);
        }
        json.writeEndArray();
        json.writeArrayFieldStart("memory_usage");
        for (MemoryUsage usage : model.memory()) {
            write(json, usage);
        }
        json.writeEndArray();
        json.writeEndObject();
    }

    private static void write(JsonGenerator json, InferenceTimings timings) throws IOException {
        json.writeObjectFieldStart("inference_stats");
        write(json, "success", timings.success());
        write(json, "fail", timings.fail());
        write(json, "queue", timings.queue());
        write(json, "compute_input", timings.compute().input());
        write(json, "compute_infer", timings.compute().infer());
        write(json, "compute_output", timings.compute().output());
        write(json, "cache_hit", timings.cacheHit());
        write(json, "cache_miss", timings.cacheMiss());
        json.writeEndObject();
    }

    private static void write(JsonGenerator json, int index, ResponseStatistics response) throws IOException {
        json.writeObjectFieldStart(Integer.toString(index));
        write(json, "compute_infer", response.computeInfer());
        write(json, "compute_output", response.computeOutput());
        write(json, "success", response.success());
        write(json, "fail", response.fail());
        write(json, "empty_response", response.emptyResponse());
        write(json, "cancel", response.cancel());
        json.writeEndObject();
    }

    private static void write(JsonGenerator json, BatchStatistics batch) throws IOException {
        json.writeStartObject();
        json.writeNumberField("batch_size", batch.batchSize());
        write(json, "compute_input", batch.compute().input());
        write(json, "compute_infer", batch.compute().infer());
        write(json, "compute_output", batch.compute().output());
        json.writeEndObject();
    }

    private static void write(JsonGenerator json, MemoryUsage usage) throws IOException {
        json.writeStartObject();
        json.writeStringField("type", type(usage.place().kind()));
        json.writeNumberField("id", usage.place().deviceId());
        json.writeNumberField("byte_size", usage.byteSize());
        json.writeEndObject();
    }

    private static String type(MemoryPlace.Kind kind) {
        return switch (kind) {
            case HOST -> "CPU";
            case PINNED -> "CPU_PINNED";
            case GPU -> "GPU";
        };
    }

    private static void write(JsonGenerator json, String name, Timing timing) throws IOException {
        json.writeObjectFieldStart(name);
        json.writeNumberField("count", timing.count());
        json.writeNumberField("ns", timing.nanos());
        json.writeEndObject();
    }
}
