package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.onnx.ort.OrtSessionOptions;
import dev.nereid.backend.onnx.ort.OrtThreads;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Parameters;
import dev.nereid.testkit.FakeModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OnnxModelOptionsTest {
    /** A pool and n instances that work along with it keep every processor busy, and no more. */
    @ParameterizedTest
    @CsvSource({"1, 1, 1", "2, 1, 2", "2, 2, 1", "2, 8, 1", "8, 1, 8", "8, 2, 7", "8, 8, 1", "16, 4, 13"})
    void sizesThreadsByProcessorsAndInstances(int processors, int instances, int threads) {
        OrtThreads sized = of(Map.of(), processors, 0, 0, instances).session().threads();

        assertThat(sized).isEqualTo(new OrtThreads(threads, threads, OnnxModelOptions.SHARED_POOL_SPINS));
    }

    @ParameterizedTest
    @CsvSource({"3, 5, 3", "0, 5, 5", "3, 0, 3", "0, 0, 7"})
    void takesThreadCountsOfTheModelThenOfTheBackendThenItsOwn(int model, int backend, int expected) {
        Map<String, String> parameters = Map.of(
                "intra_op_thread_count", Integer.toString(model), "inter_op_thread_count", Integer.toString(model));

        OrtThreads threads = of(parameters, 8, backend, backend, 2).session().threads();

        assertThat(threads.intraOp()).isEqualTo(expected);
        assertThat(threads.interOp()).isEqualTo(expected);
    }

    /** Sessions share processors by the number of instances, unless their threads are configured or shared. */
    @ParameterizedTest
    @CsvSource({
        "2, false, 0, 0, true",
        "1, false, 0, 0, false",
        "3, false, 0, 0, false",
        "100, false, 0, 0, false",
        "3, true, 0, 0, false",
        "3, false, 4, 0, true",
        "3, true, 4, 0, false",
        "3, true, 4, 4, true",
    })
    void suitsOtherInstances(int instances, boolean parallel, int intraOp, int interOp, boolean expected) {
        Map<String, String> parameters = Map.of(
                "execution_mode",
                parallel ? "1" : "0",
                "intra_op_thread_count",
                Integer.toString(intraOp),
                "inter_op_thread_count",
                Integer.toString(interOp));
        OnnxBackendOptions backend = new OnnxBackendOptions(8, 0, 0, false, 4);
        List<Device> devices = Collections.nCopies(instances, Device.CPU);

        OnnxModelOptions options = of(parameters, 8, 0, 0, 2);

        assertThat(options.suits(Parameters.of(parameters), backend, devices)).isEqualTo(expected);
        assertThat(options.withSharedThreads().suits(Parameters.of(parameters), backend, devices))
                .isTrue();
    }

    @Test
    void readsEveryOption() {
        OnnxModelOptions options = OnnxModelOptions.of(
                TestBackend.model(settings().json(TestConfig.graphLevel(1)).build(), 1)
                        .withParameters(Map.of(
                                "execution_mode",
                                "1",
                                "enable_mem_pattern",
                                "FALSE",
                                "memory.enable_memory_arena_shrinkage",
                                "cpu:0",
                                "session.use_device_allocator_for_initializers",
                                "1",
                                "session.intra_op.allow_spinning",
                                "0",
                                "gpu_mem_limit",
                                "1",
                                "anything",
                                "else")),
                new OnnxBackendOptions(2, 0, 0, false, 4));

        assertThat(options.session().execution())
                .isEqualTo(new OrtSessionOptions.Execution(true, OrtSessionOptions.GraphLevel.EXTENDED));
        assertThat(options.session().memory()).isEqualTo(new OrtSessionOptions.Memory(true, false));
        assertThat(options.session().config())
                .isEqualTo(Map.of(
                        "session.use_device_allocator_for_initializers", "1",
                        "session.intra_op.allow_spinning", "0",
                        "session.intra_op.spin_duration_us", "100",
                        "session.inter_op.allow_spinning", "0",
                        "session.force_spinning_stop", "1"));
        assertThat(options.run()).isEqualTo(Map.of("memory.enable_memory_arena_shrinkage", "cpu:0"));
    }

    @Test
    void optimizesFullyAndKeepsMemoryByDefaultOtherwise() {
        OnnxModelOptions options = of(settings());

        assertThat(options.session().execution())
                .isEqualTo(new OrtSessionOptions.Execution(false, OrtSessionOptions.GraphLevel.ALL));
        assertThat(options.session().memory()).isEqualTo(new OrtSessionOptions.Memory(true, true));
        assertThat(options.session().customOps()).isEmpty();
        assertThat(options.run()).isEmpty();
    }

    @ParameterizedTest
    @CsvSource({"-1, BASIC", "0, ALL", "1, EXTENDED", "2, DISABLED", "3, ALL", "-2, ALL"})
    void mapsGraphLevels(int level, OrtSessionOptions.GraphLevel expected) {
        assertThat(of(settings().json(TestConfig.graphLevel(level)))
                        .session()
                        .execution()
                        .level())
                .isEqualTo(expected);
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "intra_op_thread_count | two | failed to convert 'two' to integral number; PREFIX (expected: a whole"
                        + " number)",
                "inter_op_thread_count | 2147483648 | failed to convert '2147483648' to integral number; PREFIX"
                        + " (expected: a whole number)",
                "execution_mode | 2 | Invalid configuration value provided. Expected values for  execution_mode are 0"
                        + " or 1 but got 2 .; PREFIX (expected: 0 for one operator after another, or 1 for several at a"
                        + " time)",
                "enable_mem_arena | yes | failed to convert 'yes' to boolean; PREFIX (expected: true or false)",
                "enable_mem_pattern | '' | failed to convert '' to boolean; PREFIX (expected: true or false)",
            })
    void refusesValuesInTheWordsOfTheReference(String name, String value, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> of(Map.of(name, value)))
                .withMessage(message.replace("PREFIX", "parameter '" + name + "'"))
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void readsNumbersAsTheReferenceDoes() {
        OrtThreads threads = of(Map.of("intra_op_thread_count", " 3 of them", "inter_op_thread_count", "-1"))
                .session()
                .threads();

        assertThat(threads.intraOp()).isEqualTo(3);
        assertThat(threads.interOp())
                .isEqualTo(of(settings()).session().threads().interOp());
    }

    @ParameterizedTest
    @CsvSource({
        "memory.enable_memory_arena_shrinkage, cpu:0;gpu:0, 'cpu:0, the only arena on a machine without GPUs'",
    })
    void refusesValuesThatMakeNoSense(String name, String value, String expected) {
        assertRefused(Map.of(name, value), "parameter '" + name + "': " + value + " (expected: " + expected + ")");
    }

    @Test
    void refusesToShrinkAnArenaThatIsOff() {
        assertRefused(
                Map.of("enable_mem_arena", "0", "memory.enable_memory_arena_shrinkage", "cpu:0"),
                "parameter 'memory.enable_memory_arena_shrinkage': cpu:0 (expected: none, since enable_mem_arena is"
                        + " false)");
    }

    @ParameterizedTest
    @CsvSource({"openvino", "anything"})
    void refusesAcceleratorsThatAreNotThere(String name) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> of(settings().json(TestConfig.cpu(TestConfig.accelerator(name, Map.of())))))
                .withMessage("unknown Execution Accelerator '" + name + "' is requested; for CPU (expected: none, this"
                        + " ONNX Runtime has no accelerators for the CPU)");
    }

    @ParameterizedTest
    @CsvSource({"tensorrt", "cuda", "anything"})
    void looksAtAcceleratorsOfGpusOnlyForInstancesOnThem(String name) {
        ModelSettings settings = settings()
                .json(TestConfig.gpu(TestConfig.accelerator(name, Map.of())))
                .build();
        OnnxBackendOptions options = new OnnxBackendOptions(2, 0, 0, false, 4);
        FakeModelContext context = TestBackend.model(settings, 1);

        assertThat(OnnxModelOptions.of(context, options).session()).isNotNull();
        assertThat(context.logger().lines())
                .containsExactly(
                        "WARNING execution accelerator '" + name + "' for GPUs has no effect: no instance runs on one");
    }

    @Test
    void refusesAcceleratorsThatNoGpuHas() {
        ModelSettings settings = settings()
                .json(TestConfig.gpu(TestConfig.accelerator("anything", Map.of())))
                .build();

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> OnnxModelOptions.of(
                        TestBackend.model(settings, Device.CPU, new Device(Device.Kind.GPU, 0)),
                        new OnnxBackendOptions(2, 0, 0, false, 4)))
                .withMessage("unknown Execution Accelerator 'anything' is requested; for GPU (expected: tensorrt or"
                        + " cuda)")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    /** Processors are for the instances on them, and the session on a GPU has no pool of its own. */
    @Test
    void sizesThreadsByTheInstancesOnProcessors() {
        Device gpu = new Device(Device.Kind.GPU, 0);
        ModelSettings settings = settings().build();
        OnnxModelOptions options = OnnxModelOptions.of(
                TestBackend.model(settings, Device.CPU, Device.CPU, gpu, gpu, gpu),
                new OnnxBackendOptions(8, 0, 0, false, 4));

        assertThat(options.session().threads().intraOp()).isEqualTo(7);
        assertThat(options.sessionOn(Device.CPU, Parameters.of(Map.of())).sharesThreads())
                .isFalse();
        assertThat(options.sessionOn(gpu, Parameters.of(Map.of())).sharesThreads())
                .isTrue();
    }

    @Test
    void givesASessionOnAGpuThePoolThatIsConfigured() {
        ModelSettings settings = settings().build();
        Map<String, String> parameters = Map.of("intra_op_thread_count", "3");
        Device gpu = new Device(Device.Kind.GPU, 0);
        OnnxModelOptions options = OnnxModelOptions.of(
                TestBackend.model(settings, gpu).withParameters(parameters), new OnnxBackendOptions(8, 0, 0, false, 4));

        assertThat(options.sessionOn(gpu, Parameters.of(parameters)).sharesThreads())
                .isFalse();
        assertThat(options.sessionOn(gpu, Parameters.of(parameters)).threads().intraOp())
                .isEqualTo(3);
    }

    @Test
    void shrinksOnEachDeviceTheArenasThatItHas() {
        Device one = new Device(Device.Kind.GPU, 0);
        Device other = new Device(Device.Kind.GPU, 10);
        OnnxModelOptions options = OnnxModelOptions.of(
                TestBackend.model(settings().build(), one, other, Device.CPU)
                        .withParameters(Map.of("memory.enable_memory_arena_shrinkage", "gpu:0;cpu:0;gpu:10")),
                new OnnxBackendOptions(2, 0, 0, false, 4));

        String key = "memory.enable_memory_arena_shrinkage";
        assertThat(options.runOn(Device.CPU)).isEqualTo(Map.of(key, "cpu:0"));
        assertThat(options.runOn(one)).isEqualTo(Map.of(key, "gpu:0;cpu:0"));
        assertThat(options.runOn(other)).isEqualTo(Map.of(key, "cpu:0;gpu:10"));
        assertThat(options.runOn(new Device(Device.Kind.GPU, 1))).isEqualTo(Map.of(key, "cpu:0"));
    }

    /** The server completes a configuration before it knows the devices. */
    @Test
    void leavesArenasOfGpusOpenDuringTheCompletion() {
        String key = "memory.enable_memory_arena_shrinkage";
        Map<String, String> parameters = Map.of(key, "cpu:0;gpu:3");

        assertThat(of(parameters, 2, 0, 0, 0).runOn(Device.CPU)).isEqualTo(Map.of(key, "cpu:0"));
        assertRefused(
                TestBackend.model(settings().build(), 0).withParameters(Map.of(key, "gpu")),
                ErrorCode.INVALID_ARGUMENT,
                "parameter '" + key + "': gpu (expected: cpu:0, the only arena on a machine without GPUs)");
    }

    @ParameterizedTest
    @CsvSource({"gpu:1", "cpu:0;gpu:1", "gpu:0;", "cpu:1", "gpu"})
    void refusesToShrinkArenasOfOtherGpus(String value) {
        assertRefused(
                TestBackend.model(settings().build(), new Device(Device.Kind.GPU, 0))
                        .withParameters(Map.of("memory.enable_memory_arena_shrinkage", value)),
                ErrorCode.INVALID_ARGUMENT,
                "parameter 'memory.enable_memory_arena_shrinkage': " + value + " (expected: cpu:0 and arenas of the"
                        + " instances' GPUs, gpu:0, separated by ;)");
    }

    @Test
    void reportsOptionsThatScriptsLookFor() {
        FakeModelContext context = TestBackend.model(settings().build(), 1)
                .withParameters(Map.of(
                        "enable_mem_arena",
                        "1",
                        "enable_mem_pattern",
                        "1",
                        "memory.enable_memory_arena_shrinkage",
                        "cpu:0",
                        "session.use_device_allocator_for_initializers",
                        "1"));

        OnnxModelOptions.of(context, new OnnxBackendOptions(2, 0, 0, false, 4));

        assertThat(context.logger().lines())
                .containsExactly(
                        "DEBUG Configuring enable_mem_arena to 1",
                        "DEBUG Configuring enable_mem_pattern to 1",
                        "DEBUG Configuring memory.enable_memory_arena_shrinkage to cpu:0",
                        "DEBUG Configuring 'session.use_device_allocator_for_initializers' to '1' for 'm'");
    }

    @Test
    void findsLibrariesOfOperatorsInTheDirectoryOfTheModel(@TempDir Path directory) throws Exception {
        Path library = Files.createFile(directory.resolve("operators.so"));
        ModelSettings settings =
                settings().json(TestConfig.operatorLibrary("operators.so")).build();

        OnnxModelOptions options = OnnxModelOptions.of(
                new FakeModelContext(settings, directory), new OnnxBackendOptions(2, 0, 0, false, 4));

        assertThat(options.session().customOps())
                .singleElement()
                .satisfies(copy -> assertThat(copy)
                        .as("a copy, since the process maps it")
                        .isNotEqualTo(library.toAbsolutePath())
                        .hasFileName("operators.so")
                        .hasSameBinaryContentAs(library));
    }

    @Test
    void refusesLibrariesOfOperatorsThatLieElsewhere(@TempDir Path directory) throws IOException {
        Path modelDirectory = Files.createDirectory(directory.resolve("model"));
        Files.createFile(directory.resolve("operators.so"));

        assertRefused(
                new FakeModelContext(
                        settings()
                                .json(TestConfig.operatorLibrary("../operators.so"))
                                .build(),
                        modelDirectory),
                ErrorCode.INVALID_ARGUMENT,
                "unable to load model 'm', op_library_filename: '../operators.so' (expected: a path within the model's directory)");
        assertRefused(
                new FakeModelContext(
                        settings()
                                .json(TestConfig.operatorLibrary("operators.so"))
                                .build(),
                        modelDirectory),
                ErrorCode.NOT_FOUND,
                "unable to load model 'm', op_library_filename: 'operators.so' (expected: a file in the model's directory)");
    }

    private static void assertRefused(Map<String, String> parameters, String message) {
        assertRefused(
                TestBackend.model(settings().build(), 1).withParameters(parameters),
                ErrorCode.INVALID_ARGUMENT,
                message);
    }

    private static void assertRefused(FakeModelContext context, ErrorCode code, String message) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> OnnxModelOptions.of(context, new OnnxBackendOptions(2, 0, 0, false, 4)))
                .withMessage(message)
                .extracting(BackendException::code)
                .isEqualTo(code);
    }

    private static OnnxModelOptions of(ModelSettingsBuilder settings) {
        return OnnxModelOptions.of(TestBackend.model(settings.build(), 1), new OnnxBackendOptions(2, 0, 0, false, 4));
    }

    private static OnnxModelOptions of(Map<String, String> parameters) {
        return of(parameters, 2, 0, 0, 1);
    }

    private static OnnxModelOptions of(
            Map<String, String> parameters, int processors, int intraOp, int interOp, int instances) {
        return OnnxModelOptions.of(
                TestBackend.model(settings().build(), instances).withParameters(parameters),
                new OnnxBackendOptions(processors, intraOp, interOp, false, 4));
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1);
    }
}
