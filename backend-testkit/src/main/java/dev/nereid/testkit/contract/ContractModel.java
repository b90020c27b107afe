package dev.nereid.testkit.contract;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.RecordedLog;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
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
    private final List<List<ContractExample>> sequences;
    private final Map<String, ControlValues> controls;
    private final Duration timeout;

    private ContractModel(
            ModelSettings settings,
            Path modelDirectory,
            Path versionDirectory,
            Optional<Path> cacheDirectory,
            Map<String, String> backendSettings,
            List<ContractExample> examples,
            List<List<ContractExample>> sequences,
            Map<String, ControlValues> controls,
            Duration timeout) {
        this.settings = requireNonNull(settings, "settings");
        this.modelDirectory = modelDirectory;
        this.versionDirectory = versionDirectory;
        this.cacheDirectory = cacheDirectory;
        this.backendSettings = Map.copyOf(backendSettings);
        this.examples = List.copyOf(examples);
        this.sequences = List.copyOf(sequences);
        this.controls = Map.copyOf(controls);
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
        return new ContractModel(
                settings, none, none, Optional.empty(), Map.of(), List.of(), List.of(), Map.of(), TIMEOUT);
    }

    /**
     * Returns the same model with files.
     *
     * @param model the directory of the model
     * @param version the directory of the version, in the former or anywhere else
     * @return the changed model
     */
    public ContractModel in(Path model, Path version) {
        return new ContractModel(
                settings, model, version, cacheDirectory, backendSettings, examples, sequences, controls, timeout);
    }

    /**
     * Returns the same model for a backend with a certain cache directory. It is a temporary one otherwise.
     *
     * @param directory a directory that the backend may write to
     * @return the changed model
     */
    public ContractModel withCache(Path directory) {
        return new ContractModel(
                settings,
                modelDirectory,
                versionDirectory,
                Optional.of(directory),
                backendSettings,
                examples,
                sequences,
                controls,
                timeout);
    }

    /**
     * Returns the same model for a backend with settings.
     *
     * @param given the settings of the backend, as of {@code --backend-config}
     * @return the changed model
     */
    public ContractModel withBackendSettings(Map<String, String> given) {
        return new ContractModel(
                settings,
                modelDirectory,
                versionDirectory,
                cacheDirectory,
                given,
                examples,
                sequences,
                controls,
                timeout);
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
                settings,
                modelDirectory,
                versionDirectory,
                cacheDirectory,
                backendSettings,
                more,
                sequences,
                controls,
                timeout);
    }

    /**
     * Returns the same model with one more sequence of requests. The kit sets the positions and, where a request lacks them,
     * control inputs and states: a state begins with zeros and is then what the request before wrote. Two sequences of
     * different ids are also executed interleaved.
     *
     * @param id the id of the sequence
     * @param requests the requests in their order, the first to start and the last to end the sequence
     * @return the changed model
     */
    public ContractModel withSequence(long id, ContractExample... requests) {
        List<List<ContractExample>> more = new ArrayList<>(sequences);
        more.add(SequenceProgress.positioned(id, List.of(requests)));
        return new ContractModel(
                settings,
                modelDirectory,
                versionDirectory,
                cacheDirectory,
                backendSettings,
                examples,
                more,
                controls,
                timeout);
    }

    /**
     * Returns the same model with other values of a control input than 0 and 1, as {@code int32_false_true},
     * {@code fp32_false_true} or {@code bool_false_true} of its configuration say. Null requests have the first one.
     *
     * @param input the name of the control input
     * @param whenFalse its content for {@code false}, of the shape {@code [1]}, with the batch dimension if there is one
     * @param whenTrue its content for {@code true}
     * @return the changed model
     */
    public ContractModel withControlValues(String input, Tensor whenFalse, Tensor whenTrue) {
        Map<String, ControlValues> more = new HashMap<>(controls);
        more.put(input, new ControlValues(whenFalse, whenTrue));
        return new ContractModel(
                settings,
                modelDirectory,
                versionDirectory,
                cacheDirectory,
                backendSettings,
                examples,
                sequences,
                more,
                timeout);
    }

    /**
     * Returns the same model with another limit on the time of an execution.
     *
     * @param limit how long deferred work and open senders are awaited; 20 seconds by default
     * @return the changed model
     */
    public ContractModel withTimeout(Duration limit) {
        return new ContractModel(
                settings,
                modelDirectory,
                versionDirectory,
                cacheDirectory,
                backendSettings,
                examples,
                sequences,
                controls,
                limit);
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

    List<List<ContractExample>> sequences() {
        return sequences;
    }

    /** Returns a request as the server completes it: with control inputs and the first values of states. */
    ContractExample completed(ContractExample example, boolean isNull) {
        return new ControlInputs(settings, controls).complete(example, isNull);
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
