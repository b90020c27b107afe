package dev.nereid.testkit.contract;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeDeviceMemory;
import dev.nereid.testkit.FakeModelClient;
import dev.nereid.testkit.FakeModelContext;
import dev.nereid.testkit.FakeModelRequest;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.RecordedLog;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;

/**
 * A model with requests to it. Immutable.
 *
 * <p>Its configuration decides which parts of the {@link BackendContract} apply. Each request gets the responses that it
 * expects whenever it is sent: one of a sequence begins that.
 */
public final class ContractModel {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    private final ModelSettings settings;

    // Changed only in a copy before its method returns it.
    private Path modelDirectory = Path.of("no-files");
    private Path versionDirectory = modelDirectory;
    private Optional<Path> cacheDirectory = Optional.empty();
    private Map<String, String> backendSettings = Map.of();
    private Map<String, String> parameters = Map.of();
    private List<ContractExample> examples = List.of();
    private List<List<ContractExample>> sequences = List.of();
    private Map<String, ControlValues> controls = Map.of();
    private Duration timeout = TIMEOUT;
    private Device device = Device.CPU;
    private Optional<CalledModels> called = Optional.empty();

    private ContractModel(ModelSettings settings) {
        this.settings = requireNonNull(settings, "settings");
    }

    private ContractModel copy() {
        ContractModel copy = new ContractModel(settings);
        copy.modelDirectory = modelDirectory;
        copy.versionDirectory = versionDirectory;
        copy.cacheDirectory = cacheDirectory;
        copy.backendSettings = backendSettings;
        copy.parameters = parameters;
        copy.examples = examples;
        copy.sequences = sequences;
        copy.controls = controls;
        copy.timeout = timeout;
        copy.device = device;
        copy.called = called;
        return copy;
    }

    /**
     * Creates a model without files and requests.
     *
     * @param settings its complete configuration
     */
    public static ContractModel of(ModelSettings settings) {
        return new ContractModel(settings);
    }

    /**
     * Returns the same model with files.
     *
     * @param model the directory of the model
     * @param version the directory of the version, in the former or anywhere else
     */
    public ContractModel in(Path model, Path version) {
        ContractModel copy = copy();
        copy.modelDirectory = requireNonNull(model, "model");
        copy.versionDirectory = requireNonNull(version, "version");
        return copy;
    }

    /**
     * Returns the same model for a backend with a certain cache directory. It is a temporary one otherwise.
     *
     * @param directory a directory that the backend may write to
     */
    public ContractModel withCache(Path directory) {
        ContractModel copy = copy();
        copy.cacheDirectory = Optional.of(directory);
        return copy;
    }

    /**
     * Returns the same model for a backend with settings.
     *
     * @param settings the settings of the backend, as of {@code --backend-config}
     */
    public ContractModel withBackendSettings(Map<String, String> settings) {
        ContractModel copy = copy();
        copy.backendSettings = Map.copyOf(settings);
        return copy;
    }

    /** Returns the same model with one more parameter of its configuration. */
    public ContractModel withParameter(String name, String value) {
        Map<String, String> more = new HashMap<>(parameters);
        more.put(name, value);
        ContractModel copy = copy();
        copy.parameters = Map.copyOf(more);
        return copy;
    }

    /**
     * Returns the same model with one more request.
     *
     * @param example the request, with its responses
     */
    public ContractModel with(ContractExample example) {
        List<ContractExample> more = new ArrayList<>(examples);
        more.add(example);
        ContractModel copy = copy();
        copy.examples = List.copyOf(more);
        return copy;
    }

    /**
     * Returns the same model with one more sequence of requests. The kit sets the positions and, where a request lacks them,
     * control inputs and states: a state begins with zeros and is then what the request before wrote. Two sequences of
     * different ids are also executed interleaved. The contract needs a request of {@link #with} too.
     *
     * @param requests the requests in their order, the first to start and the last to end the sequence
     */
    public ContractModel withSequence(long id, ContractExample... requests) {
        List<List<ContractExample>> more = new ArrayList<>(sequences);
        more.add(SequenceProgress.positioned(id, List.of(requests)));
        ContractModel copy = copy();
        copy.sequences = List.copyOf(more);
        return copy;
    }

    /**
     * Returns the same model with other values of a control input than 0 and 1, as {@code int32_false_true},
     * {@code fp32_false_true} or {@code bool_false_true} of its configuration say. Null requests have the first one.
     *
     * @param whenFalse its content for {@code false}, of the shape {@code [1]}, with the batch dimension if there is one
     * @param whenTrue its content for {@code true}
     */
    public ContractModel withControlValues(String input, Tensor whenFalse, Tensor whenTrue) {
        Map<String, ControlValues> more = new HashMap<>(controls);
        more.put(input, new ControlValues(whenFalse, whenTrue));
        ContractModel copy = copy();
        copy.controls = Map.copyOf(more);
        return copy;
    }

    /**
     * Returns the same model with another limit on the time of an execution.
     *
     * @param limit how long deferred work and open senders are awaited; 20 seconds by default
     */
    public ContractModel withTimeout(Duration limit) {
        ContractModel copy = copy();
        copy.timeout = requireNonNull(limit, "limit");
        return copy;
    }

    /**
     * Returns the same model with instances on a GPU with a stand-in for its driver: memory of the GPU, and pinned
     * memory, is memory of the host.
     */
    public ContractModel onGpu(int number) {
        ContractModel copy = copy();
        copy.device = new Device(Device.Kind.GPU, number);
        return copy;
    }

    /**
     * Returns the same model with others that its backend calls by {@link ModelContext#models}. Each is a function from the
     * inputs of a request to the outputs of its response:
     *
     * {@snippet :
     * model.withModels(Map.of("labels", inputs -> Map.of("LABEL", Tensor.ofStrings(Shape.of(1), List.of("cat")))));
     * }
     *
     * <p>Functions run on other threads than the backend, several at once. The request fails with the {@link
     * BackendException} that one throws, and with INTERNAL for any other exception. Responses that the backend leaves open
     * fail the test.
     *
     * @param models the functions by the names of the models; all others are unknown
     */
    public ContractModel withModels(Map<String, UnaryOperator<Map<String, Tensor>>> models) {
        ContractModel copy = copy();
        copy.called = Optional.of(ModelCalls.of(models));
        return copy;
    }

    /**
     * Returns the same model with others that its backend calls, for what functions cannot be: decoupled models and late
     * responses.
     *
     * @param responder receives each request, as with {@link FakeModelClient}
     * @param names the names of the models that are ready
     */
    public ContractModel withModels(Consumer<FakeModelRequest> responder, String... names) {
        ContractModel copy = copy();
        copy.called = Optional.of(ModelCalls.of(responder, Set.of(names)));
        return copy;
    }

    Device device() {
        return device;
    }

    /** Returns where instances may have memory besides that of the host. */
    List<MemoryPlace> places() {
        return device.kind() == Device.Kind.GPU
                ? List.of(
                        new MemoryPlace(MemoryPlace.Kind.GPU, device.id()), new MemoryPlace(MemoryPlace.Kind.PINNED, 0))
                : List.of();
    }

    /** Returns memory that an instance allocates of. */
    LeakCheckingMemory memory() {
        return new LeakCheckingMemory(places().stream()
                .filter(place -> !place.isHost())
                .map(FakeDeviceMemory::new)
                .toArray(FakeDeviceMemory[]::new));
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

    /** Returns the client of one load; empty for a model that calls no others. */
    Optional<ModelCalls> calls() {
        return called.map(models -> new ModelCalls(models, timeout));
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
                        Collections.nCopies(instances, device),
                        new RecordedLog())
                .withParameters(parameters);
    }
}
