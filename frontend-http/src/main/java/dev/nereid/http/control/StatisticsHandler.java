package dev.nereid.http.control;

import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.http.json.JsonWriter;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import io.vertx.core.http.HttpServerResponse;
import java.util.List;

/** Serves model statistics. Immutable. */
public final class StatisticsHandler {
    private final ModelCatalog models;

    public StatisticsHandler(ModelCatalog models) {
        this.models = models;
    }

    /** Answers the statistics of all models. */
    public void all(HttpServerResponse response) {
        WorkerResponse.send(response, () -> text(models.statistics()));
    }

    /** Answers the statistics of one model, or of one of its versions. */
    public void ofModel(String name, String version, HttpServerResponse response) {
        WorkerResponse.send(response, () -> text(models.statistics(ModelRef.parse(name, version))));
    }

    private static byte[] text(List<ModelStatistics> statistics) {
        JsonWriter json = new JsonWriter();
        json.raw("{\"model_stats\":[");
        for (int i = 0; i < statistics.size(); i++) {
            write(json.raw(i == 0 ? "" : ","), statistics.get(i));
        }
        return json.raw("]}").toByteArray();
    }

    private static void write(JsonWriter json, ModelStatistics model) {
        json.raw("{\"name\":").string(model.model().name());
        json.raw(",\"version\":\"").integer(model.model().version());
        json.raw("\",\"last_inference\":").integer(model.executions().lastInferenceMillis());
        json.raw(",\"inference_count\":").integer(model.executions().inferenceCount());
        json.raw(",\"execution_count\":").integer(model.executions().executionCount());
        write(json, model.inferences());
        json.raw(",\"response_stats\":{");
        for (int i = 0; i < model.responses().size(); i++) {
            write(json.raw(i == 0 ? "" : ","), i, model.responses().get(i));
        }
        json.raw("},\"batch_stats\":[");
        for (int i = 0; i < model.executions().batches().size(); i++) {
            write(json.raw(i == 0 ? "" : ","), model.executions().batches().get(i));
        }
        json.raw("],\"memory_usage\":[");
        for (int i = 0; i < model.memory().size(); i++) {
            write(json.raw(i == 0 ? "" : ","), model.memory().get(i));
        }
        json.raw("]}");
    }

    private static void write(JsonWriter json, int place, ResponseStatistics response) {
        json.raw("\"").integer(place);
        write(json, "\":{\"compute_infer\":", response.computeInfer());
        write(json, ",\"compute_output\":", response.computeOutput());
        write(json, ",\"success\":", response.success());
        write(json, ",\"fail\":", response.fail());
        write(json, ",\"empty_response\":", response.emptyResponse());
        write(json, ",\"cancel\":", response.cancel());
        json.raw("}");
    }

    private static void write(JsonWriter json, MemoryUsage usage) {
        json.raw("{\"type\":").string(type(usage.place().kind()));
        json.raw(",\"id\":").integer(usage.place().deviceId());
        json.raw(",\"byte_size\":").integer(usage.byteSize()).raw("}");
    }

    private static String type(MemoryPlace.Kind kind) {
        return switch (kind) {
            case HOST -> "CPU";
            case PINNED -> "CPU_PINNED";
            case GPU -> "GPU";
        };
    }

    private static void write(JsonWriter json, InferenceTimings times) {
        write(json, ",\"inference_stats\":{\"success\":", times.success());
        write(json, ",\"fail\":", times.fail());
        write(json, ",\"queue\":", times.queue());
        write(json, ",\"compute_input\":", times.compute().input());
        write(json, ",\"compute_infer\":", times.compute().infer());
        write(json, ",\"compute_output\":", times.compute().output());
        write(json, ",\"cache_hit\":", times.cacheHit());
        write(json, ",\"cache_miss\":", times.cacheMiss());
        json.raw("}");
    }

    private static void write(JsonWriter json, BatchStatistics batch) {
        json.raw("{\"batch_size\":").integer(batch.batchSize());
        write(json, ",\"compute_input\":", batch.compute().input());
        write(json, ",\"compute_infer\":", batch.compute().infer());
        write(json, ",\"compute_output\":", batch.compute().output());
        json.raw("}");
    }

    private static void write(JsonWriter json, String name, Timing timing) {
        json.raw(name).raw("{\"count\":").integer(timing.count());
        json.raw(",\"ns\":").integer(timing.nanos()).raw("}");
    }
}
