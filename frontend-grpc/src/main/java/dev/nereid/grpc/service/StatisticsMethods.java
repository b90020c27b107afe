package dev.nereid.grpc.service;

import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import inference.GRPCInferenceServiceGrpc;
import inference.InferBatchStatistics;
import inference.InferResponseStatistics;
import inference.InferStatistics;
import inference.MemoryUsage;
import inference.ModelStatistics;
import inference.ModelStatisticsRequest;
import inference.ModelStatisticsResponse;
import inference.StatisticDuration;
import io.grpc.ServerMethodDefinition;
import java.util.List;

/** Handles the method {@code ModelStatistics}. Safe for use by any thread. */
final class StatisticsMethods {
    private final ModelCatalog models;

    private StatisticsMethods(ModelCatalog models) {
        this.models = models;
    }

    static List<ServerMethodDefinition<?, ?>> of(ModelCatalog models) {
        StatisticsMethods methods = new StatisticsMethods(models);
        return List.of(UnaryMethod.of(GRPCInferenceServiceGrpc.getModelStatisticsMethod(), methods::statistics));
    }

    private ModelStatisticsResponse statistics(ModelStatisticsRequest request) {
        ModelRef model = ModelRef.parse(request.getName(), request.getVersion());
        List<dev.nereid.api.statistics.ModelStatistics> found =
                model.name().isEmpty() ? models.statistics() : models.statistics(model);
        ModelStatisticsResponse.Builder response = ModelStatisticsResponse.newBuilder();
        found.forEach(statistics -> response.addModelStats(message(statistics)));
        return response.build();
    }

    private static ModelStatistics message(dev.nereid.api.statistics.ModelStatistics model) {
        ModelStatistics.Builder message = ModelStatistics.newBuilder()
                .setName(model.model().name())
                .setVersion(Long.toString(model.model().version()))
                .setLastInference(model.executions().lastInferenceMillis())
                .setInferenceCount(model.executions().inferenceCount())
                .setExecutionCount(model.executions().executionCount())
                .setInferenceStats(message(model.inferences()));
        model.executions().batches().forEach(batch -> message.addBatchStats(message(batch)));
        for (int i = 0; i < model.responses().size(); i++) {
            message.putResponseStats(
                    Integer.toString(i), message(model.responses().get(i)));
        }
        model.memory().forEach(usage -> message.addMemoryUsage(message(usage)));
        return message.build();
    }

    private static InferResponseStatistics message(ResponseStatistics response) {
        return InferResponseStatistics.newBuilder()
                .setComputeInfer(message(response.computeInfer()))
                .setComputeOutput(message(response.computeOutput()))
                .setSuccess(message(response.success()))
                .setFail(message(response.fail()))
                .setEmptyResponse(message(response.emptyResponse()))
                .setCancel(message(response.cancel()))
                .build();
    }

    private static MemoryUsage message(dev.nereid.spi.MemoryUsage usage) {
        String type = switch (usage.place().kind()) {
            case HOST -> "CPU";
            case PINNED -> "CPU_PINNED";
            case GPU -> "GPU";
        };
        return MemoryUsage.newBuilder()
                .setType(type)
                .setId(usage.place().deviceId())
                .setByteSize(usage.byteSize())
                .build();
    }

    private static InferStatistics message(InferenceTimings times) {
        return InferStatistics.newBuilder()
                .setSuccess(message(times.success()))
                .setFail(message(times.fail()))
                .setQueue(message(times.queue()))
                .setComputeInput(message(times.compute().input()))
                .setComputeInfer(message(times.compute().infer()))
                .setComputeOutput(message(times.compute().output()))
                .setCacheHit(message(times.cacheHit()))
                .setCacheMiss(message(times.cacheMiss()))
                .build();
    }

    private static InferBatchStatistics message(BatchStatistics batch) {
        return InferBatchStatistics.newBuilder()
                .setBatchSize(batch.batchSize())
                .setComputeInput(message(batch.compute().input()))
                .setComputeInfer(message(batch.compute().infer()))
                .setComputeOutput(message(batch.compute().output()))
                .build();
    }

    private static StatisticDuration message(Timing timing) {
        return StatisticDuration.newBuilder()
                .setCount(timing.count())
                .setNs(timing.nanos())
                .build();
    }
}
