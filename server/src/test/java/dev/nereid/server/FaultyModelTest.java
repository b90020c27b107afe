package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelStatus;
import dev.nereid.repository.config.ConfigProblem;
import dev.nereid.server.check.CheckReport;
import dev.nereid.server.check.RepositoryCheck;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * The faulty configurations whose texts are known of the reference server, in one repository: the index has the reason of
 * each, with file, line and column where the text is no configuration, and always with field and expectation.
 */
@Timeout(120)
final class FaultyModelTest {
    private static final String TEXT = "Internal: failed to read text proto from {m}/config.pbtxt: ";
    private static final String WRONG = "Invalid argument: ";

    /** A configuration that is right. */
    private static final String RIGHT = """
            backend: "recording"
            max_batch_size: 8
            input { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] }
            """;

    private static final String CONFIG_FIELDS =
            "name, platform, backend, runtime, version_policy, max_batch_size, input, output, batch_input, batch_output,"
                    + " optimization, dynamic_batching, sequence_batching, ensemble_scheduling, instance_group,"
                    + " default_model_filename, cc_model_filenames, metric_tags, parameters, model_warmup,"
                    + " model_operations, model_transaction_policy, model_repository_agents, response_cache,"
                    + " model_metrics";

    @TempDir
    private Path directory;

    private final List<String> reasons = new ArrayList<>();
    private TestModels models;

    /** Adds a model and what its reason has to contain; {@code {m}} stands for its name. */
    private void add(String config, String reason) {
        String name = "m%02d".formatted(reasons.size());
        models.model(name, config.replace("{m}", name));
        reasons.add(reason.replace("{m}", name));
    }

    private void batching(String dynamicBatching, String reason) {
        add(RIGHT + "dynamic_batching { " + dynamicBatching + " }", WRONG + reason);
    }

    private void input(String input, String reason) {
        add("backend: 'recording'\nmax_batch_size: 8\ninput { " + input + " }", reason);
    }

    @Test
    void showsTheReasonOfEachFaultyModel() throws Exception {
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.recording(plugins);
        addTexts();
        addBatching();
        addTensors();
        addOthers();
        models.recording("right", "");

        Map<String, String> shown = new TreeMap<>();
        try (NereidServer server = NereidServer.start(options(plugins))) {
            for (ModelStatus status :
                    server.control().index().toCompletableFuture().get()) {
                shown.merge(status.name(), status.state() + " " + status.reason(), (one, other) -> one + other);
            }
        }

        assertThat(shown).containsEntry("right", "READY ").hasSize(reasons.size() + 1);
        List<String> wrong = new ArrayList<>();
        for (int i = 0; i < reasons.size(); i++) {
            String reason = shown.get("m%02d".formatted(i));
            if (reason == null || !reason.startsWith("UNAVAILABLE " + reasons.get(i))) {
                wrong.add("expected: " + reasons.get(i) + "\n  but was: " + reason);
            }
        }
        assertThat(wrong.stream().collect(Collectors.joining("\n"))).isEmpty();
        assertThat(differingFromTheCheck(plugins, shown)).isEmpty();
    }

    /** Compares the reasons with what {@code nereid check} says of the same models. Both come from the same code. */
    private List<String> differingFromTheCheck(Path plugins, Map<String, String> shown) throws IOException {
        List<String> differing = new ArrayList<>();
        for (CheckReport.ModelReport model :
                RepositoryCheck.run(options(plugins)).models()) {
            String reason = String.valueOf(shown.get(model.name()));
            for (ConfigProblem problem : model.errors()) {
                String text = problem.describe().replaceFirst("^version \\d+: ", "");
                if (!reason.contains(text)) {
                    differing.add("check: " + text + "\n  index: " + reason);
                }
            }
        }
        return differing;
    }

    /** Adds texts that are no configurations. */
    private void addTexts() {
        add(
                RIGHT + "maximum_batch: 4",
                TEXT + "5:1: unknown field 'maximum_batch' in ModelConfig (expected: name, platform, ");
        add(
                "input {\n  name: \"x\"\n  dtype: TYPE_FP32\n}",
                TEXT + "3:3: unknown field 'dtype' in ModelInput (expected: name, data_type, ");
        add(
                RIGHT + "input {\n data_type: FP32 }",
                TEXT + "6:13: unknown value 'FP32' (expected: TYPE_INVALID, TYPE_BOOL, ");
        add(
                "maxbatch_size: 4\ninput { nam: 'x' }",
                TEXT + "1:1: unknown field 'maxbatch_size' in ModelConfig (expected: " + CONFIG_FIELDS
                        + "); did you mean 'max_batch_size'?; 2:9: unknown field 'nam' in ModelInput (expected: name, ");
        add(
                "instance_group { kind: CPU }",
                TEXT + "1:24: unknown value 'CPU' (expected: KIND_AUTO, KIND_GPU, KIND_CPU, KIND_MODEL)");
        add(
                "max_batch_size: 1\nmax_batch_size: 2",
                TEXT + "2:15: field 'max_batch_size' is given twice (expected: at most once)");
        add(
                "dynamic_batching {}\nsequence_batching {}",
                TEXT + "2:1: field 'sequence_batching' is given beside 'dynamic_batching' (expected: at most one of the"
                        + " two)");
        add("max_batch_size: 1.5", TEXT + "1:17: Expected integer, got: 1.5 (expected: an integer)");
        add("name: simple", TEXT + "1:7: found 'simple' (expected: a string)");
        add("input {\n  name: \"x\"\n", TEXT + "3:1: found the end of the file (expected: '}')");
        add("name: \"a\" }", TEXT + "1:11: found '}' (expected: a name)");
        add("# only a comment\n\nversion_policy: all", TEXT + "3:17: found 'all' (expected: '{')");
    }

    private void addBatching() {
        add("backend: 'recording' max_batch_size: -1", WRONG + "'max_batch_size' must be non-negative value for {m}");
        batching("preferred_batch_size: 0", "dynamic batching preferred size must be positive for {m}");
        batching("preferred_batch_size: [ 4, 9 ]", "dynamic batching preferred size must be <= max batch size for {m}");
        batching("priority_levels: 3", "default priority level must be in range [1, 3] for {m}");
        batching(
                "priority_levels: 2 default_priority_level: 1 priority_queue_policy { key: 3 value {} }",
                "priority queue policy must have priority level in range [1, 2] for {m}");
        batching(
                "priority_levels: 2 default_priority_level: 1 preserve_ordering: true",
                "Only one priority level is allowed when 'preserve_ordering' is true for {m}");
        batching(
                "preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 1 }",
                "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for {m}");
        add(
                RIGHT + "response_cache { enable: true } sequence_batching {}",
                WRONG + "Response Cache does not currently support model {m} with sequence batching scheduler. Please"
                        + " disable the response cache.");
        add(
                RIGHT + "response_cache { enable: true } model_transaction_policy { decoupled: true }",
                WRONG
                        + "Response Cache does not currently support model {m} with 'decoupled' transaction policy. Please"
                        + " disable the response cache.");
    }

    private void addTensors() {
        String dims = "dimension must be integer >= 1, or -1 to indicate a variable-size dimension";
        input("data_type: TYPE_FP32 dims: 1", WRONG + "model input must specify 'name'");
        input("name: 'x' dims: 1", WRONG + "model input 'x' must specify 'data_type'");
        input("name: 'x' data_type: TYPE_FP32", WRONG + "model input 'x' must specify 'dims'");
        input("name: 'x' data_type: TYPE_FP32 dims: -2", WRONG + "model input 'x' " + dims);
        input("name: 'x' data_type: TYPE_FP32 dims: 0", WRONG + "model input 'x' " + dims);
        input(
                "name: 'x' data_type: TYPE_FP32 dims: 2 reshape { shape: 3 }",
                WRONG + "model input 'x' has different size for dims and reshape");
        input(
                "name: 'x' data_type: TYPE_FP32 dims: [ -1, -1 ] reshape { shape: -1 }",
                WRONG + "model input 'x' has different number of variable-size dimensions for dims and reshape");
        input(
                "name: 'x' data_type: TYPE_FP32 dims: 2 format: FORMAT_NHWC",
                WRONG + "model input NHWC/NCHW require 3 dims");
        input(
                "name: 'x' data_type: TYPE_FP32 dims: 2 is_shape_tensor: true",
                WRONG + "shape tensors are only supported for TensorRT platform");
        input(
                "name: 'x' data_type: TYPE_FP32 dims: [ 1, 2, 3 ] is_non_linear_format_io: true",
                WRONG + "Non-linear IO format is only supported for the TensorRT platform");
        add(RIGHT + "output {}", WRONG + "model output must specify 'name'");
        add(
                RIGHT + "batch_input { source_input: 'z' data_type: TYPE_INT32 target_name: 'b' }",
                WRONG + "unknown source input name 'z'");
        add(
                RIGHT + "batch_input { source_input: 'INPUT0' data_type: TYPE_INT64 target_name: 'b' }",
                WRONG + "batch input data type must be TYPE_INT32 or TYPE_FP32");
        add(
                RIGHT + "batch_output { target_name: 'nope' source_input: 'INPUT0' }",
                WRONG + "unknown target output name 'nope'");
    }

    private void addOthers() {
        add(
                "name: 'm'",
                WRONG + "Invalid model name: Could not determine backend for model '{m}' with no backend in model"
                        + " configuration. Expected model name of the form 'model.<backend_name>'.");
        add(
                "backend: 'onnxruntime' platform: 'tensorrt_plan'",
                WRONG + "unexpected 'platform' and 'backend' pair, got:tensorrt_plan, onnxruntime");
        add("backend: 'pytorch' platform: 'x'", WRONG + "unexpected 'platform' and 'backend' pair, got:x, pytorch");
        add(
                "name: 'other'\n" + RIGHT,
                WRONG + "unexpected directory name '{m}' for model 'other', directory name must equal model name");
        add(
                RIGHT + "version_policy { specific { versions: 7 } }",
                WRONG + "at least one version must be available under the version policy of model '{m}'");
        add(
                RIGHT + "instance_group { name: 'g' kind: KIND_CPU gpus: 0 }",
                WRONG + "instance group g of model {m} has kind KIND_CPU but specifies one or more GPUs");
        add(
                RIGHT + "instance_group { name: 'g' kind: KIND_GPU }",
                WRONG + "instance group g of model {m} has kind KIND_GPU but no GPUs are available");
        add(RIGHT + "model_metrics { metric_control {} }", WRONG + "metric control must specify 'metric_identifier'");
        add(
                "platform: 'onnxruntime_onx'",
                WRONG + "unexpected platform type 'onnxruntime_onx' for {m}. Did you mean" + " 'onnxruntime_onnx'?");
        add(
                RIGHT.replace("recording", "recordng"),
                WRONG + "unable to find backend library for backend 'recordng', try specifying runtime on the model"
                        + " configuration. Did you mean 'recording'?");
        add(
                RIGHT.replace("recording", "nope"),
                WRONG + "unable to find backend library for backend 'nope', try specifying runtime on the model"
                        + " configuration.");
        add(
                RIGHT.replace("output { name", "output { label_filename: '../x' name"),
                "Unsupported: label file path '../x' for output 'OUTPUT0' in model '{m}' is outside model directory");
    }

    private ServerOptions options(Path plugins) throws IOException {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.exitOnError = false;
                    o.processors = 2;
                });
    }
}
