package dev.nereid.backend.onnx;

import static dev.nereid.backend.onnx.TestConfig.accelerator;
import static dev.nereid.backend.onnx.TestConfig.gpu;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.onnx.ort.OrtProvider;
import dev.nereid.backend.onnx.ort.OrtProviders;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.testkit.FakeModelContext;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class OnnxAcceleratorsTest {
    private static final Device GPU = new Device(Device.Kind.GPU, 1);
    private static final List<String> ALL =
            List.of("TensorrtExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider");

    @Test
    void addsNoProviderForTheCpu() {
        ModelSettings settings =
                settings().json(gpu(accelerator("tensorrt", Map.of()))).build();

        assertThat(OnnxAccelerators.on(Device.CPU, TestBackend.model(settings, 1), ALL))
                .isEqualTo(OrtProviders.CPU);
        assertThat(OnnxAccelerators.on(new Device(Device.Kind.MODEL, 0), TestBackend.model(settings, 1), ALL))
                .isEqualTo(OrtProviders.CPU);
    }

    @Test
    void addsCudaOfTheInstancesDevice() {
        assertThat(OnnxAccelerators.on(GPU, TestBackend.model(settings().build(), GPU), ALL))
                .isEqualTo(new OrtProviders(1, List.of(new OrtProvider(OrtProvider.Kind.CUDA, Map.of()))));
    }

    /** ONNX Runtime gives a part of the graph to the first that can compute it. */
    @Test
    void addsTensorRtBeforeCudaWhateverTheOrderInTheConfiguration() {
        ModelSettings settings = settings()
                .json(gpu(
                        accelerator("cuda", Map.of("gpu_mem_limit", "1000")),
                        accelerator("tensorrt", Map.of("precision_mode", "FP16"))))
                .build();

        assertThat(OnnxAccelerators.on(GPU, TestBackend.model(settings, GPU), ALL)
                        .all())
                .containsExactly(
                        new OrtProvider(OrtProvider.Kind.TENSORRT, Map.of("trt_fp16_enable", "1")),
                        new OrtProvider(OrtProvider.Kind.CUDA, Map.of("gpu_mem_limit", "1000")));
    }

    @Test
    void passesOptionsOfCudaOnUnread() {
        assertThat(cuda(
                        Map.of(),
                        Map.of(
                                "cudnn_conv_algo_search",
                                "HEURISTIC",
                                "use_tf32",
                                "0",
                                "do_copy_in_default_stream",
                                "False",
                                "use_ep_level_unified_stream",
                                "on",
                                "enable_cuda_graph",
                                "0",
                                "tunable_op_enable",
                                "",
                                "anything",
                                "else")))
                .isEqualTo(Map.of(
                        "cudnn_conv_algo_search", "HEURISTIC",
                        "use_tf32", "0",
                        "do_copy_in_default_stream", "0",
                        "use_ep_level_unified_stream", "1",
                        "enable_cuda_graph", "0",
                        "anything", "else"));
    }

    @Test
    void readsTheOptionsOfCudaAmongTheParametersFirst() {
        Map<String, String> parameters = Map.of(
                "cudnn_conv_algo_search",
                "1",
                "arena_extend_strategy",
                "1",
                "do_copy_in_default_stream",
                "0",
                "gpu_mem_limit",
                "2000");

        assertThat(cuda(parameters, Map.of("gpu_mem_limit", "1000", "arena_extend_strategy", "kNextPowerOfTwo")))
                .isEqualTo(Map.of(
                        "cudnn_conv_algo_search", "HEURISTIC",
                        "arena_extend_strategy", "kSameAsRequested",
                        "do_copy_in_default_stream", "0",
                        "gpu_mem_limit", "2000"));
    }

    @Test
    void keepsTheAcceleratorsOptionsThatParametersLeaveOpen() {
        assertThat(cuda(Map.of("execution_mode", "0"), Map.of("gpu_mem_limit", "1000")))
                .isEqualTo(Map.of("gpu_mem_limit", "1000"));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "cudnn_conv_algo_search | 3 | unsupported cudnn_conv_algo_search value '3' is requested; PREFIX (expected:"
                        + " 0 to 2 for EXHAUSTIVE, HEURISTIC, DEFAULT)",
                "cudnn_conv_algo_search | EXHAUSTIVE | failed to convert 'EXHAUSTIVE' to integral number; PREFIX"
                        + " (expected: a whole number)",
                "arena_extend_strategy | -1 | unsupported arena_extend_strategy value '-1' is requested; PREFIX (expected:"
                        + " 0 to 1 for kNextPowerOfTwo, kSameAsRequested)",
                "do_copy_in_default_stream | yes | failed to convert 'yes' to boolean; PREFIX (expected: true or false)",
            })
    void refusesParametersInTheWordsOfTheReference(String name, String value, String message) {
        assertRefused(settings(), Map.of(name, value), message.replace("PREFIX", "parameter '" + name + "'"));
    }

    @ParameterizedTest
    @CsvSource({
        "user_compute_stream, 140000000",
        "has_user_compute_stream, 1",
        "default_memory_arena_cfg, 1",
        "gpu_external_alloc, 1",
        "gpu_external_free, 1",
        "gpu_external_empty_cache, 1",
    })
    void refusesAddresses(String name, String value) {
        assertRefused(
                settings().json(gpu(accelerator("cuda", Map.of(name, value)))),
                "parameter '" + name + "' of execution accelerator 'cuda': " + value
                        + " (expected: none, since a configuration cannot know addresses of the process)");
    }

    @ParameterizedTest
    @CsvSource({"cuda, enable_cuda_graph", "tensorrt, trt_cuda_graph_enable"})
    void refusesToCaptureRuns(String accelerator, String name) {
        assertRefused(
                settings().json(gpu(accelerator(accelerator, Map.of(name, "true")))),
                "parameter '" + name + "' of execution accelerator '" + accelerator
                        + "': true (expected: false, since a captured run reads the addresses of its first inputs)");
    }

    @Test
    void mapsParametersOfTensorRt() {
        assertThat(tensorRt(Map.of(
                        "precision_mode",
                        "INT8",
                        "max_workspace_size_bytes",
                        "18446744073709551615",
                        "int8_calibration_table_name",
                        "table.flatbuffers",
                        "int8_use_native_calibration_table",
                        "TRUE",
                        "trt_min_subgraph_size",
                        " 3",
                        "trt_engine_cache_enable",
                        "on",
                        "trt_engine_cache_path",
                        "/cache",
                        "trt_tactic_sources",
                        "",
                        "trt_cuda_graph_enable",
                        "false")))
                .isEqualTo(Map.of(
                        "trt_int8_enable", "1",
                        "trt_max_workspace_size", "18446744073709551615",
                        "trt_int8_calibration_table_name", "table.flatbuffers",
                        "trt_int8_use_native_calibration_table", "1",
                        "trt_min_subgraph_size", "3",
                        "trt_engine_cache_enable", "1",
                        "trt_engine_cache_path", "/cache",
                        "trt_cuda_graph_enable", "0"));
    }

    @ParameterizedTest
    @CsvSource({"FP16, trt_fp16_enable", "BF16, trt_bf16_enable", "INT8, trt_int8_enable"})
    void mapsPrecisions(String precision, String option) {
        assertThat(tensorRt(Map.of("precision_mode", precision))).isEqualTo(Map.of(option, "1"));
    }

    @Test
    void needsNoOptionForFullPrecision() {
        assertThat(tensorRt(Map.of("precision_mode", "FP32"))).isEmpty();
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "precision_mode | FP8 | unsupported precision mode 'FP8' is requested; PREFIX (expected: FP32, FP16, BF16"
                        + " or INT8)",
                "max_workspace_size_bytes | much | failed to convert 'much' to unsigned long long integral number; PREFIX"
                        + " (expected: a number of bytes)",
                "max_workspace_size_bytes | 18446744073709551616 | failed to convert '18446744073709551616' to unsigned"
                        + " long long integral number; PREFIX (expected: a number of bytes)",
                "trt_dla_core | one | failed to convert 'one' to integral number; PREFIX (expected: a whole number)",
                "trt_dump_subgraphs | 2 | failed to convert '2' to boolean; PREFIX (expected: true or false)",
                "max_cached_engines | 4 | unknown parameter 'max_cached_engines' is provided for TensorRT Execution"
                        + " Accelerator",
                "trt_fp16_enable | 1 | unknown parameter 'trt_fp16_enable' is provided for TensorRT Execution"
                        + " Accelerator",
            })
    void refusesParametersOfTensorRtInTheWordsOfTheReference(String name, String value, String message) {
        assertRefused(
                settings().json(gpu(accelerator("tensorrt", Map.of(name, value)))),
                message.replace("PREFIX", "parameter '" + name + "' of execution accelerator 'tensorrt'"));
    }

    @Test
    void refusesUnknownAccelerators() {
        assertRefused(
                settings().json(gpu(accelerator("opencl", Map.of()))),
                "unknown Execution Accelerator 'opencl' is requested; for GPU (expected: tensorrt or cuda)");
    }

    @Test
    void saysWhatToDoWithoutTheProviderOfTensorRt() {
        ModelSettings settings =
                settings().json(gpu(accelerator("tensorrt", Map.of()))).build();
        List<String> withoutTensorRt = List.of("CUDAExecutionProvider", "CPUExecutionProvider");

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> OnnxAccelerators.on(GPU, TestBackend.model(settings, GPU), withoutTensorRt))
                .withMessage(
                        "unable to load model 'm', instance on gpu1: the ONNX Runtime in this plugin has no TensorRT"
                                + " provider (has: CUDAExecutionProvider, CPUExecutionProvider): install the plugin directory"
                                + " onnxruntime-gpu in place of onnx, or remove the execution accelerator 'tensorrt'")
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
    }

    @Test
    void saysWhatToDoWithoutAnyProviderForGpus() {
        ModelSettings settings =
                settings().json(gpu(accelerator("tensorrt", Map.of()))).build();

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() ->
                        OnnxAccelerators.on(GPU, TestBackend.model(settings, GPU), List.of("CPUExecutionProvider")))
                .withMessage("unable to load model 'm', instance on gpu1: the ONNX Runtime in this plugin has no CUDA"
                        + " provider (has: CPUExecutionProvider): install the plugin directory onnxruntime-gpu in place of"
                        + " onnx, or use KIND_CPU");
    }

    @Test
    void reportsProvidersInTheWordsOfTheReference() {
        assertThat(OnnxAccelerators.report(
                        new OrtProvider(OrtProvider.Kind.CUDA, Map.of("use_tf32", "0", "gpu_mem_limit", "9")),
                        GPU,
                        settings().build()))
                .isEqualTo("CUDA Execution Accelerator is set for 'm' on device 1 with options: {gpu_mem_limit=9,"
                        + " use_tf32=0}");
    }

    private static Map<String, String> cuda(Map<String, String> ofModel, Map<String, String> ofAccelerator) {
        return options(settings().json(gpu(accelerator("cuda", ofAccelerator))), ofModel, OrtProvider.Kind.CUDA);
    }

    private static Map<String, String> tensorRt(Map<String, String> parameters) {
        return options(settings().json(gpu(accelerator("tensorrt", parameters))), Map.of(), OrtProvider.Kind.TENSORRT);
    }

    private static Map<String, String> options(
            ModelSettingsBuilder settings, Map<String, String> parameters, OrtProvider.Kind kind) {
        FakeModelContext context = TestBackend.model(settings.build(), GPU).withParameters(parameters);
        return OnnxAccelerators.on(GPU, context, ALL).all().stream()
                .filter(provider -> provider.kind() == kind)
                .findFirst()
                .orElseThrow()
                .options();
    }

    private static void assertRefused(ModelSettingsBuilder settings, String message) {
        assertRefused(settings, Map.of(), message);
    }

    /** At the load of a model and for an instance that is added later. */
    private static void assertRefused(ModelSettingsBuilder settings, Map<String, String> parameters, String message) {
        FakeModelContext context = TestBackend.model(settings.build(), GPU).withParameters(parameters);
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> OnnxAccelerators.check(context))
                .withMessage(message)
                .extracting(BackendException::code)
                .isEqualTo(ErrorCode.INVALID_ARGUMENT);
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> OnnxAccelerators.on(GPU, context, ALL))
                .withMessage(message);
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1);
    }
}
