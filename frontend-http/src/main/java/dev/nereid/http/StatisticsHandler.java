package dev.nereid.http;

import dev.nereid.api.BatchStatistics;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InferenceTimings;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelStatistics;
import dev.nereid.api.Timing;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.http.HttpHeaders;
import io.vertx.core.http.HttpServerResponse;
import java.util.List;

/**
 * Tells what models have done. Immutable.
 *
 * <p>Two fields are there for clients that expect them and are always empty: {@code response_stats} and
 * {@code memory_usage}, which only backends could fill.
 */
final class StatisticsHandler {
    private final ModelCatalog models;

    StatisticsHandler(ModelCatalog models) {
        this.models = models;
    }

    /** Answers the statistics of all models. */
    void all(HttpServerResponse response) {
        send(response, models.statistics());
    }

    /** Answers the statistics of one model, or of one of its versions. */
    void ofModel(ModelPath path, HttpServerResponse response) {
        List<ModelStatistics> statistics;
        try {
            statistics = models.statistics(path.ref());
        } catch (InferenceException e) {
            HttpErrors.send(response, e, HttpErrors.JSON);
            return;
        }
        send(response, statistics);
    }

    private static void send(HttpServerResponse response, List<ModelStatistics> statistics) {
        JsonWriter json = new JsonWriter();
        json.raw("{\"model_stats\":[");
        for (int i = 0; i < statistics.size(); i++) {
            write(json.raw(i == 0 ? "" : ","), statistics.get(i));
        }
        json.raw("]}");
        response.putHeader(HttpHeaders.CONTENT_TYPE, HttpErrors.JSON).end(Buffer.buffer(json.toByteArray()));
    }

    private static void write(JsonWriter json, ModelStatistics model) {
        json.raw("{\"name\":").string(model.name());
        json.raw(",\"version\":\"").integer(model.version());
        json.raw("\",\"last_inference\":").integer(model.lastInferenceMillis());
        json.raw(",\"inference_count\":").integer(model.inferenceCount());
        json.raw(",\"execution_count\":").integer(model.executionCount());
        write(json, model.inferences());
        json.raw(",\"response_stats\":{},\"batch_stats\":[");
        for (int i = 0; i < model.batches().size(); i++) {
            write(json.raw(i == 0 ? "" : ","), model.batches().get(i));
        }
        json.raw("],\"memory_usage\":[]}");
    }

    private static void write(JsonWriter json, InferenceTimings times) {
        write(json, ",\"inference_stats\":{\"success\":", times.success());
        write(json, ",\"fail\":", times.fail());
        write(json, ",\"queue\":", times.queue());
        write(json, ",\"compute_input\":", times.computeInput());
        write(json, ",\"compute_infer\":", times.computeInfer());
        write(json, ",\"compute_output\":", times.computeOutput());
        write(json, ",\"cache_hit\":", times.cacheHit());
        write(json, ",\"cache_miss\":", times.cacheMiss());
        json.raw("}");
    }

    private static void write(JsonWriter json, BatchStatistics batch) {
        json.raw("{\"batch_size\":").integer(batch.batchSize());
        write(json, ",\"compute_input\":", batch.computeInput());
        write(json, ",\"compute_infer\":", batch.computeInfer());
        write(json, ",\"compute_output\":", batch.computeOutput());
        json.raw("}");
    }

    private static void write(JsonWriter json, String name, Timing timing) {
        json.raw(name).raw("{\"count\":").integer(timing.count());
        json.raw(",\"ns\":").integer(timing.nanos()).raw("}");
    }
}
