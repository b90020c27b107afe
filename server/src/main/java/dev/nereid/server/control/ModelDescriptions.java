package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.repository.ModelKey;
import dev.nereid.repository.VersionPolicy;
import dev.nereid.server.lifecycle.ModelDescriber;
import dev.nereid.server.lifecycle.ModelPreparation;
import dev.nereid.server.lifecycle.PreparedModel;
import java.util.concurrent.CompletionStage;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Describes models that are loaded on demand: reads and completes their configurations without loading them. Safe for use
 * by any thread; never blocks.
 */
final class ModelDescriptions {
    private static final Logger LOG = LoggerFactory.getLogger(ModelDescriptions.class);

    private final ControlTasks tasks;
    private final ModelSources sources;
    private final ModelPreparation preparation;
    private final ModelDescriber describer;
    private final CatalogUpdater catalog;
    private final LoadThreads threads;
    private final LoadFailures failures;

    ModelDescriptions(
            ControlTasks tasks,
            ModelSources sources,
            ModelPreparation preparation,
            ModelDescriber describer,
            CatalogUpdater catalog,
            LoadThreads threads,
            LoadFailures failures) {
        this.tasks = tasks;
        this.sources = sources;
        this.preparation = preparation;
        this.describer = describer;
        this.catalog = catalog;
        this.threads = threads;
        this.failures = failures;
    }

    /**
     * Describes a model, and lets requests load it from now on.
     *
     * @param model its key
     * @return completed when requests find the model; fails with {@link InferenceException} if it is wrong
     */
    CompletionStage<Void> describe(String model) {
        return tasks.share(model, "describe", () -> describeNow(model));
    }

    private void describeNow(String model) throws InterruptedException {
        try {
            ModelSource source = sources.find(model);
            try {
                threads.run(() -> {
                    describe(source);
                    return null;
                });
            } finally {
                source.release();
            }
        } catch (InferenceException e) {
            LOG.atError()
                    .addKeyValue("model", ModelKey.name(model))
                    .log("Poll failed for model directory '{}': {}", ModelKey.name(model), e.publicMessage());
            if (VersionPolicy.isNoneLeft(e)) {
                catalog.withoutVersions(model, ModelSources.unavailable(model, e));
            } else {
                catalog.failed(model, ModelSources.unavailable(model, e));
            }
            throw e;
        }
    }

    private void describe(ModelSource source) {
        try {
            PreparedModel prepared = preparation.prepare(source.directory(), source.config());
            LoadAgents agents = new LoadAgents(prepared.agents()); // which are called again at each load
            try {
                long bytes = prepared.versions().stream()
                        .mapToLong(version -> ModelDescriber.estimatedBytes(source.fileBytes(version)))
                        .sum();
                catalog.await(describer.describe(prepared, bytes), prepared.versions());
            } finally {
                agents.release();
            }
        } catch (RuntimeException | VirtualMachineError e) {
            throw failures.of(source.directory(), source.written(), e);
        }
    }
}
