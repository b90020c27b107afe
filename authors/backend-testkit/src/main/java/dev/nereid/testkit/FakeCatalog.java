package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.ModelStatistics;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;

/** The models of a {@link FakeInferenceServer}. Safe for use by any thread. */
final class FakeCatalog implements ModelCatalog {
    private final Map<String, FakeModel> models = new ConcurrentHashMap<>();

    private final AtomicReference<List<ModelStatistics>> statistics = new AtomicReference<>(List.of());

    private volatile Optional<List<ModelStatus>> index = Optional.empty();

    private volatile Optional<Function<ModelRef, CompletionStage<Readiness>>> readiness = Optional.empty();

    void setStatistics(List<ModelStatistics> figures) {
        statistics.set(List.copyOf(figures));
    }

    void setIndex(List<ModelStatus> states) {
        index = Optional.of(List.copyOf(states));
    }

    void setReadiness(Function<ModelRef, CompletionStage<Readiness>> checks) {
        readiness = Optional.of(checks);
    }

    void add(FakeModel model) {
        models.put(model.description().name(), model);
    }

    FakeModel find(ModelRef model) {
        FakeModel found = models.get(model.name());
        if (found == null) {
            throw unknown(model);
        }
        if (model.version() != ModelRef.LATEST
                && !found.description().versions().contains(model.version())) {
            throw unknown(model);
        }
        return found;
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        ModelMetadata all = find(model).description();
        List<Long> versions = model.version() == ModelRef.LATEST ? all.versions() : List.of(model.version());
        return new ModelMetadata(
                all.name(), versions, all.platform(), all.maxBatchSize(), all.decoupled(), all.inputs(), all.outputs());
    }

    @Override
    public ModelConfig config(ModelRef model) {
        ModelMetadata description = metadata(model);
        return ModelConfig.newBuilder()
                .setName(description.name())
                .setBackend(description.platform())
                .setMaxBatchSize(description.maxBatchSize())
                .build();
    }

    @Override
    public String configJson(ModelRef model) {
        ModelMetadata description = metadata(model);
        return "{\"name\":\"" + description.name() + "\",\"max_batch_size\":" + description.maxBatchSize() + "}";
    }

    @Override
    public boolean isReady(ModelRef model) {
        return find(model).isReady();
    }

    @Override
    public CompletionStage<Readiness> checkReady(ModelRef model) {
        return readiness.map(checks -> checks.apply(model)).orElseGet(() -> ModelCatalog.super.checkReady(model));
    }

    @Override
    public List<ModelStatus> index() {
        return index.orElseGet(this::readyModels);
    }

    @Override
    public List<ModelStatistics> statistics() {
        return statistics.get();
    }

    @Override
    public List<ModelStatistics> statistics(ModelRef model) {
        List<ModelStatistics> found = statistics.get().stream()
                .filter(entry -> entry.model().name().equals(model.name()))
                .filter(entry ->
                        model.version() == ModelRef.LATEST || entry.model().version() == model.version())
                .toList();
        if (found.isEmpty()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT, "requested model '" + model.name() + "' is not available");
        }
        return found;
    }

    private List<ModelStatus> readyModels() {
        return models.values().stream()
                .map(FakeModel::description)
                .sorted(Comparator.comparing(ModelMetadata::name))
                .flatMap(description -> description.versions().stream()
                        .map(version -> new ModelStatus(
                                description.name(), OptionalLong.of(version), ModelStatus.State.READY, "")))
                .toList();
    }

    private static InferenceException unknown(ModelRef model) {
        return new InferenceException(ErrorCode.NOT_FOUND, "Request for unknown model: " + model + " is not found");
    }
}
