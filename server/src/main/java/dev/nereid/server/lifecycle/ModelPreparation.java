package dev.nereid.server.lifecycle;

import dev.nereid.api.InferenceException;
import dev.nereid.server.config.ConfigCompletion;
import dev.nereid.server.config.ConfigNormalization;
import dev.nereid.server.config.ConfigValidation;
import dev.nereid.server.config.ModelConfigReader;
import dev.nereid.server.plugin.BackendRegistry;
import dev.nereid.server.repository.ModelDirectory;
import dev.nereid.server.repository.VersionPolicy;
import inference.ModelConfig;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads a model's configuration and completes it as far as possible without its backend. Immutable; blocks. */
final class ModelPreparation {
    private static final Logger LOG = LoggerFactory.getLogger(ModelPreparation.class);

    private final BackendRegistry backends;
    private final ModelLoadOptions options;
    private final boolean rateLimited;

    /**
     * Creates the preparation of a server's models.
     *
     * @param rateLimited whether the server has a rate limiter
     */
    ModelPreparation(BackendRegistry backends, ModelLoadOptions options, boolean rateLimited) {
        this.backends = backends;
        this.options = options;
        this.rateLimited = rateLimited;
    }

    /**
     * Prepares a model.
     *
     * @param directory its directory
     * @return the model with at least one version to be loaded
     * @throws InferenceException if the configuration is wrong, requires an unsupported feature, or leaves no version
     */
    PreparedModel prepare(ModelDirectory directory) {
        Optional<Path> file = directory.configFile(options.configName());
        ModelConfig read = file.map(path -> ModelConfigReader.read(directory.root(), path))
                .orElse(ModelConfig.getDefaultInstance());
        ModelConfig completed = ConfigCompletion.fromFiles(read, directory.name(), directory.firstVersionEntries());
        ModelConfig config = ConfigNormalization.normalize(withBackend(completed));
        ConfigValidation.check(config, directory.name());
        UnsupportedFeatures.check(config);
        reportIgnored(config);
        if (!options.autoComplete()) {
            ConfigValidation.checkTensors(config);
        }
        return new PreparedModel(
                directory, config, file.isPresent(), VersionPolicy.select(config, directory.versions()));
    }

    /** Fills in the backend that a platform means, if a plugin says so. */
    private ModelConfig withBackend(ModelConfig config) {
        String backend = config.getBackend().isEmpty() ? backends.nameOfPlatform(config.getPlatform()) : "";
        return backend.isEmpty()
                ? config
                : config.toBuilder().setBackend(backend).build();
    }

    private void reportIgnored(ModelConfig config) {
        List<String> ignored = UnsupportedFeatures.ignored(config, rateLimited);
        if (!ignored.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("model", config.getName())
                    .addKeyValue("settings", ignored)
                    .log("settings that this version does not support have no effect");
        }
    }
}
