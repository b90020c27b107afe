package dev.nereid.testkit.contract;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.RecordedLog;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * A model with requests to it. Immutable.
 *
 * <p>Its configuration decides which parts of the {@link BackendContract} apply. Each request gets the responses that it
 * expects whenever it is sent: one of a sequence begins that.
 */
public final class ContractModel {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private final ModelSettings settings;
    private final Path modelDirectory;
    private final Path versionDirectory;
    private final Optional<Path> cacheDirectory;
    private final Map<String, String> backendSettings;
    private final List<ContractExample> examples;
    private final Duration timeout;

    private ContractModel(
            ModelSettings settings,
            Path modelDirectory,
            Path versionDirectory,
            Optional<Path> cacheDirectory,
            Map<String, String> backendSettings,
            List<ContractExample> examples,
            Duration timeout) {
        this.settings = requireNonNull(settings, "settings");
        this.modelDirectory = modelDirectory;
        this.versionDirectory = versionDirectory;
        this.cacheDirectory = cacheDirectory;
        this.backendSettings = Map.copyOf(backendSettings);
        this.examples = List.copyOf(examples);
        this.timeout = requireNonNull(timeout, "timeout");
    }

    /**
     * Creates a model without files and requests.
     *
     * @param settings its complete configuration
     * @return the model
     */
    public static ContractModel of(ModelSettings settings) {
        Path none = Path.of("no-files");
        return new ContractModel(settings, none, none, Optional.empty(), Map.of(), List.of(), TIMEOUT);
    }

    /**
     * Returns the same model with files.
     *
     * @param model the directory of the model
     * @param version the directory of the version, in the former or anywhere else
     * @return the changed model
     */
    public ContractModel in(Path model, Path version) {
        return new ContractModel(settings, model, version, cacheDirectory, backendSettings, examples, timeout);
    }

    /**
     * Returns the same model for a backend with a certain cache directory. It is a temporary one otherwise.
     *
     * @param directory a directory that the backend may write to
     * @return the changed model
     */
    public ContractModel withCache(Path directory) {
        return new ContractModel(
                settings, modelDirectory, versionDirectory, Optional.of(directory), backendSettings, examples, timeout);
    }

    /**
     * Returns the same model for a backend with settings.
     *
     * @param given the settings of the backend, as of {@code --backend-config}
     * @return the changed model
     */
    public ContractModel withBackendSettings(Map<String, String> given) {
        return new ContractModel(settings, modelDirectory, versionDirectory, cacheDirectory, given, examples, timeout);
    }

    /**
     * Returns the same model with one more request.
     *
     * @param example the request, with its responses
     * @return the changed model
     */
    public ContractModel with(ContractExample example) {
        List<ContractExample> more = new ArrayList<>(examples);
        more.add(example);
        return new ContractModel(
                settings, modelDirectory, versionDirectory, cacheDirectory, backendSettings, more, timeout);
    }

    /**
     * Returns the same model with another limit on the time of an execution.
     *
     * @param limit how long deferred work and open senders are awaited; 20 seconds by default
     * @return the changed model
     */
    public ContractModel withTimeout(Duration limit) {
        return new ContractModel(
                settings, modelDirectory, versionDirectory, cacheDirectory, backendSettings, examples, limit);
    }

    Duration timeout() {
        return timeout;
    }

    ModelSettings settings() {
        return settings;
    }

    List<ContractExample> examples() {
        return examples;
    }

    Optional<Path> cacheDirectory() {
        return cacheDirectory;
    }

    Map<String, String> backendSettings() {
        return backendSettings;
    }

    FakeModelContext context(int instances) {
        return new FakeModelContext(
                settings,
                modelDirectory,
                versionDirectory,
                Collections.nCopies(instances, Device.CPU),
                new RecordedLog());
    }
}
