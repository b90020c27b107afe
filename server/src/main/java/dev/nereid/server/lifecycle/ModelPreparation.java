package dev.nereid.server.lifecycle;

import dev.nereid.api.BestEffort;
import dev.nereid.api.InferenceException;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.agent.AgentChain;
import dev.nereid.plugin.agent.RepositoryAgents;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.repository.ModelLayout;
import dev.nereid.repository.VersionPolicy;
import dev.nereid.repository.config.BatchingStrategyFactory;
import dev.nereid.repository.config.ConfigCompletion;
import dev.nereid.repository.config.ConfigNormalization;
import dev.nereid.repository.config.ConfigValidation;
import dev.nereid.repository.config.ModelConfigJson;
import dev.nereid.repository.config.ModelConfigReader;
import dev.nereid.repository.config.Placeholders;
import dev.nereid.server.dependency.ModelRequirer;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import inference.ModelEnsembling;
import java.nio.file.Path;
import java.util.List;
import java.util.NavigableSet;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.TreeSet;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Reads a model's configuration and completes it as far as possible without its backend. Immutable; blocks. */
public final class ModelPreparation {
    private static final Logger LOG = LoggerFactory.getLogger(ModelPreparation.class);

    private final BackendRegistry backends;
    private final RepositoryAgents agents;
    private final ModelLoadOptions options;
    private final boolean rateLimited;
    private final ModelLoadWatch watch;

    /**
     * Creates the preparation of a server's models.
     *
     * @param options how they are loaded
     * @param watch reports overdue preparations
     */
    public ModelPreparation(
            BackendRegistry backends, ModelLoadOptions options, boolean rateLimited, ModelLoadWatch watch) {
        this.watch = watch;
        this.backends = backends;
        agents = new RepositoryAgents(backends, ModelConfigJson::write);
        this.options = options;
        this.rateLimited = rateLimited;
    }

    /**
     * Finds the file that configures a model.
     *
     * @return an existing file; empty if there is none
     * @throws InferenceException if it is a pipe or a device
     */
    public Optional<Path> configFile(ModelDirectory directory) {
        return directory.configFile(options.configName());
    }

    /**
     * Prepares a model with the configuration in its directory.
     *
     * @return the model with at least one version to be loaded
     * @throws InferenceException as {@link #prepare(ModelDirectory, Optional)}
     */
    public PreparedModel prepare(ModelDirectory directory) {
        return prepare(directory, Optional.empty());
    }

    /**
     * Prepares a model. Its repository agents are called before its files are read, as its configuration says.
     *
     * @param override a configuration that replaces the one in the directory; empty if none does
     * @return the model with at least one version to be loaded; its agents wait for the outcome of the load
     * @throws InferenceException if the configuration is wrong, requires an unsupported feature, or leaves no version, or
     *     with the reason of an agent
     */
    public PreparedModel prepare(ModelDirectory directory, Optional<ModelConfigReader.Written> override) {
        try (ModelLoadWatch.Step _ = watch.begin(directory.name(), OptionalLong.empty(), "prepare")) {
            return prepareWatched(directory, override);
        }
    }

    private PreparedModel prepareWatched(ModelDirectory directory, Optional<ModelConfigReader.Written> override) {
        directory.checkContained();
        Optional<ModelConfigReader.Written> found = override.or(() -> read(directory));
        AgentChain chain = agents.chain(
                directory.name(), found.orElse(ModelConfigReader.Written.NONE).config());
        ModelDirectory effective = directory.at(chain.load(directory.path()));
        boolean prepared = false;
        try {
            if (effective.equals(directory)) {
                directory.checkVersionDirectories(); // before any of them is listed
            }
            PreparedModel model = complete(
                    effective, effective.equals(directory) ? found : override.or(() -> read(effective)), chain);
            if (effective.equals(directory)) { // an agent may put its own directory together as it likes
                directory.checkContained(model.versions());
            }
            prepared = true;
            return model;
        } finally {
            if (!prepared) {
                chain.loadFail();
            }
        }
    }

    /**
     * Prepares an update of a model that serves. Calls no repository agent.
     *
     * @return the model, as for a load
     * @throws InferenceException as for a load
     * @throws ReloadRequiredException if it has agents
     */
    public PreparedModel prepareUpdate(ModelDirectory directory) throws ReloadRequiredException {
        try (ModelLoadWatch.Step _ = watch.begin(directory.name(), OptionalLong.empty(), "prepare")) {
            directory.checkContained();
            directory.checkVersionDirectories();
            Optional<ModelConfigReader.Written> found = read(directory);
            AgentChain chain = agents.chain(
                    directory.name(),
                    found.orElse(ModelConfigReader.Written.NONE).config());
            if (!chain.isEmpty()) {
                throw new ReloadRequiredException("it has repository agents");
            }
            return complete(directory, found, chain);
        }
    }

    /**
     * Returns the names of the models that a model needs, such as the models of an ensemble's steps. Calls no agent.
     *
     * @param override a configuration that replaces the one in the directory; empty if none does
     * @return the names; empty also if the configuration cannot be read, for which {@link #prepare} has the reason
     */
    public Set<String> needed(ModelDirectory directory, Optional<ModelConfigReader.Written> override) {
        Optional<ModelConfigReader.Written> config;
        try {
            directory.checkContained();
            config = override.or(() -> read(directory));
        } catch (InferenceException e) {
            LOG.atDebug()
                    .addKeyValue("model", directory.name())
                    .setCause(e)
                    .log("needed models not known (model '{}')", directory.name());
            return Set.of();
        }
        Set<String> names = new TreeSet<>();
        config.ifPresent(found -> found.config().getEnsembleScheduling().getStepList().stream()
                .map(ModelEnsembling.Step::getModelName)
                .filter(name -> !name.isEmpty())
                .forEach(names::add));
        return names;
    }

    /**
     * Reads the configuration in the directory of a model.
     *
     * @return the configuration; empty if there is none, and configurations are completed
     * @throws InferenceException if it cannot be read, or is missing where none is completed
     */
    private Optional<ModelConfigReader.Written> read(ModelDirectory directory) {
        Optional<Path> file = configFile(directory);
        if (file.isEmpty() && !options.autoComplete()) {
            throw new InferenceException(
                    ErrorCode.INTERNAL,
                    "failed to open text file for read " + directory.name()
                            + "/config.pbtxt: No such file or directory");
        }
        return file.map(found -> ModelConfigReader.readWritten(directory.root(), found));
    }

    private PreparedModel complete(
            ModelDirectory directory, Optional<ModelConfigReader.Written> found, AgentChain chain) {
        BestEffort.run("ignored entries of " + directory.name(), directory::reportIgnored);
        ModelConfigReader.Written written = found.orElse(ModelConfigReader.Written.NONE);
        BestEffort.run(
                "placeholders of " + directory.name(), () -> reportPlaceholders(directory.name(), written.config()));
        try {
            return complete(directory, found, written, chain);
        } catch (InferenceException e) {
            throw e.withSuffix(Placeholders.hint(written.config()));
        }
    }

    private PreparedModel complete(
            ModelDirectory directory,
            Optional<ModelConfigReader.Written> found,
            ModelConfigReader.Written written,
            AgentChain chain) {
        ModelConfig completed = completeFromFiles(directory, written.config());
        ModelConfig config = ConfigNormalization.normalize(withBackend(completed));
        ConfigValidation.check(config, directory.name());
        BatchingStrategyFactory.refuseNative(config);
        BestEffort.run("ignored settings of " + directory.name(), () -> reportIgnored(config));
        if (!options.autoComplete()) {
            ConfigValidation.checkTensors(config);
        }
        return new PreparedModel(
                directory,
                config,
                found.isPresent(),
                written.hasMaxBatchSize(),
                versions(directory, config),
                chain,
                PreparedModel.NOT_FORCED,
                ModelRequirer.NONE);
    }

    private static ModelConfig completeFromFiles(ModelDirectory directory, ModelConfig config) {
        try {
            return ConfigCompletion.fromFiles(config, directory.name(), directory.firstVersionEntries());
        } catch (InferenceException e) {
            throw withLayout(e, directory, config.getDefaultModelFilename());
        }
    }

    private static NavigableSet<Long> versions(ModelDirectory directory, ModelConfig config) {
        NavigableSet<Long> existing = directory.versions();
        try {
            return VersionPolicy.select(config, existing);
        } catch (InferenceException e) {
            throw existing.isEmpty() ? withLayout(e, directory, config.getDefaultModelFilename()) : e;
        }
    }

    /** Adds a mistake in the layout of a model's directory to the reference server's text. */
    private static InferenceException withLayout(InferenceException e, ModelDirectory directory, String filename) {
        return BestEffort.get(
                        "layout of " + directory.name(),
                        Optional.<String>empty(),
                        () -> ModelLayout.hint(directory, filename))
                .map(hint -> new InferenceException(e.code(), e.publicMessage() + " (" + hint + ")"))
                .orElse(e);
    }

    /** Fills in the backend that a platform means, if a plugin says so. */
    private ModelConfig withBackend(ModelConfig config) {
        String backend = config.getBackend().isEmpty() ? backends.nameOfPlatform(config.getPlatform()) : "";
        return backend.isEmpty()
                ? config
                : config.toBuilder().setBackend(backend).build();
    }

    private static void reportPlaceholders(String model, ModelConfig config) {
        for (String placeholder : Placeholders.of(config)) {
            LOG.atWarn().addKeyValue("model", model).log("{} (model '{}')", placeholder, model);
        }
    }

    private void reportIgnored(ModelConfig config) {
        List<String> ignored = ConfigValidation.ignored(config, rateLimited);
        if (!ignored.isEmpty()) {
            LOG.atWarn()
                    .addKeyValue("model", config.getName())
                    .addKeyValue("settings", ignored)
                    .log(
                            "settings that this version does not support have no effect (model '{}', {})",
                            config.getName(),
                            ignored);
        }
    }
}
