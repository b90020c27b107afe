package dev.nereid.repository.config;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import inference.ModelConfig;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

class ConfigCompletionTest {
    @ParameterizedTest
    @CsvSource(delimiter = '|', nullValues = "-", textBlock = """
            # configuration                           | version directory  | platform              | backend     | filename
            -                                         | model.savedmodel/  | tensorflow_savedmodel | tensorflow  | model.savedmodel
            -                                         | model.graphdef     | tensorflow_graphdef   | tensorflow  | model.graphdef
            backend: 'tensorflow'                     | model.graphdef     | tensorflow_graphdef   | tensorflow  | model.graphdef
            default_model_filename: 'model.savedmodel'| other              | tensorflow_savedmodel | tensorflow  | model.savedmodel
            platform: 'tensorflow_graphdef'           | -                  | tensorflow_graphdef   | tensorflow  | model.graphdef
            platform: 'tensorflow_graphdef' default_model_filename: 'x' | - | tensorflow_graphdef   | tensorflow  | x
            -                                         | model.plan         | tensorrt_plan         | tensorrt    | model.plan
            platform: 'tensorrt_plan'                 | -                  | tensorrt_plan         | tensorrt    | model.plan
            default_model_filename: 'model.plan'      | -                  | tensorrt_plan         | tensorrt    | model.plan
            backend: 'tensorrt' default_model_filename: 'a.plan' | -       | tensorrt_plan         | tensorrt    | a.plan
            -                                         | model.onnx         | onnxruntime_onnx      | onnxruntime | model.onnx
            -                                         | model.onnx/        | onnxruntime_onnx      | onnxruntime | model.onnx
            platform: 'onnxruntime_onnx'              | -                  | onnxruntime_onnx      | onnxruntime | model.onnx
            backend: 'onnxruntime'                    | other              | onnxruntime_onnx      | onnxruntime | model.onnx
            default_model_filename: 'model.onnx'      | -                  | onnxruntime_onnx      | onnxruntime | model.onnx
            -                                         | model.xml          | ''                    | openvino    | model.xml
            default_model_filename: 'model.xml'       | -                  | ''                    | openvino    | model.xml
            -                                         | model.pt           | pytorch_libtorch      | pytorch     | model.pt
            platform: 'libtorch'                      | -                  | libtorch              | pytorch     | model.pt
            platform: 'pytorch_libtorch'              | -                  | pytorch_libtorch      | pytorch     | ''
            platform: 'pytorch_libtorch' default_model_filename: 'x' | -   | pytorch_libtorch      | pytorch     | x
            backend: 'pytorch'                        | -                  | pytorch_libtorch      | pytorch     | model.pt
            -                                         | model.pt2          | torch_aoti            | pytorch     | model.pt2
            platform: 'torch_aoti'                    | -                  | torch_aoti            | pytorch     | model.pt2
            -                                         | model.py           | ''                    | python      | model.py
            backend: 'python'                         | -                  | ''                    | python      | model.py
            backend: 'identity'                       | model.onnx         | ''                    | identity    | ''
            platform: 'ensemble'                      | model.onnx         | ensemble              | ''          | ''
            """)
    void derivesTheBackendFromTheFiles(String config, String entry, String platform, String backend, String filename) {
        ModelConfig completed = ConfigCompletion.fromFiles(
                Configs.config(config == null ? "" : config), "m", entry == null ? Set.of() : Set.of(entry));

        assertThat(completed.getPlatform()).isEqualTo(platform);
        assertThat(completed.getBackend()).isEqualTo(backend);
        assertThat(completed.getDefaultModelFilename()).isEqualTo(filename);
        assertThat(completed.getName()).isEqualTo("m");
    }

    @ParameterizedTest
    @CsvSource({"model.plan/", "model.pt/", "model.pt2/", "model.graphdef/", "model.savedmodel"})
    void doesNotTakeADirectoryForAFileNorAFileForADirectory(String entry) {
        assertThatThrownBy(() -> ConfigCompletion.fromFiles(Configs.config(""), "m", Set.of(entry)))
                .hasMessageStartingWith("Invalid model name: ");
    }

    @Test
    void takesTheBackendFromTheModelsNameAtLast() {
        ModelConfig completed = ConfigCompletion.fromFiles(Configs.config(""), "echo.identity.two", Set.of());

        assertThat(completed.getBackend()).isEqualTo("identity.two");
        assertThat(completed.getDefaultModelFilename()).isEqualTo("model.identity.two");
        assertThat(completed.getPlatform()).isEmpty();
    }

    @Test
    void refusesAModelWithoutAnyHintOfItsBackend() {
        assertThatThrownBy(() -> ConfigCompletion.fromFiles(Configs.config(""), "m", Set.of("weights.bin")))
                .hasMessage("Invalid model name: Could not determine backend for model 'm' with no backend in model"
                        + " configuration. Expected model name of the form 'model.<backend_name>'.");
    }

    @Test
    void keepsTheNameThatIsGiven() {
        ModelConfig completed = ConfigCompletion.fromFiles(Configs.config("name: 'other' backend: 'x'"), "m", Set.of());

        assertThat(completed.getName()).isEqualTo("other");
    }

    private static final TensorSpec FOUND = TensorSpec.of("x", DataType.BYTES, Shape.of(-1, 2))
            .withReshape(Shape.of(2, -1))
            .with(TensorSpec.Trait.OPTIONAL);

    @Test
    void replacesInputsAndOutputsByWhatTheBackendFound() {
        ModelConfig config = Configs.config("""
                max_batch_size: 2
                input { name: "x" data_type: TYPE_FP32 dims: 1 format: FORMAT_NCHW }
                input { name: "gone" }
                output { name: "y" label_filename: "labels.txt" }
                """);
        ModelCompletion completion = ModelCompletion.EMPTY
                .withProposedMaxBatchSize(4)
                .withInputs(List.of(FOUND))
                .withOutputs(List.of(TensorSpec.of("y", DataType.FP16, Shape.of(3))));

        assertThat(ConfigCompletion.merge(config, completion)).isEqualTo(Configs.config("""
                max_batch_size: 2
                input {
                  name: "x" data_type: TYPE_STRING dims: [ -1, 2 ] reshape { shape: [ 2, -1 ] }
                  optional: true format: FORMAT_NCHW
                }
                output { name: "y" data_type: TYPE_FP16 dims: 3 label_filename: "labels.txt" }
                """));
    }

    @Test
    void saysWhichConfiguredTensorsTheBackendReplaces() {
        ModelConfig config = Configs.config("""
                name: 'm' backend: 'b'
                input { name: "x" data_type: TYPE_INT32 dims: [ 1 ] reshape { shape: [] } optional: true }
                input { name: "same" data_type: TYPE_FP32 dims: [ -1 ] format: FORMAT_NCHW }
                output { name: "y" data_type: TYPE_FP32 dims: [ 9 ] label_filename: "labels.txt" }
                output { name: "z" data_type: TYPE_FP32 dims: [ 1 ] }
                """);
        ModelCompletion completion = ModelCompletion.EMPTY
                .withInput("x", DataType.FP32, 1)
                .withInput("same", DataType.FP32, -1)
                .withInput("new", DataType.FP32, 2)
                .withOutput("y", DataType.FP32, 1);

        assertThat(ConfigCompletion.replaced(config, ConfigCompletion.merge(config, completion), 3))
                .containsExactly("model 'm', version 3: backend 'b' replaces configured tensors:"
                        + " input 'x' data_type TYPE_INT32 → TYPE_FP32, reshape [] → none, optional true → false;"
                        + " input 'new' added; output 'y' dims [9] → [1]; output 'z' removed");
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "input { name: 'x' }",
                "input { name: 'x' data_type: TYPE_FP32 } output { name: 'y' dims: 3 }",
                "max_batch_size: 2 input { name: 'x' dims: 2 }",
                "input { name: 'x' data_type: TYPE_FP32 dims: [ -1, 2 ] }"
            })
    void saysNothingOfWhatTheConfigurationLacks(String text) {
        ModelConfig config = Configs.config(text);
        ModelCompletion completion = ModelCompletion.EMPTY
                .withProposedMaxBatchSize(4)
                .withInput("x", DataType.FP32, 2)
                .withOutput("y", DataType.FP16, 3);

        assertThat(ConfigCompletion.replaced(config, ConfigCompletion.merge(config, completion), 1))
                .isEmpty();
        assertThat(ConfigCompletion.replaced(config, config, 1)).isEmpty();
    }

    @Test
    void namesAFewOfManyReplacedTensors() {
        ModelConfig.Builder config = ModelConfig.newBuilder();
        for (int i = 0; i < 1_000; i++) {
            config.addInputBuilder().setName("x" + i);
        }
        ModelCompletion completion = ModelCompletion.EMPTY.withInput("x7", DataType.FP32, 2);

        assertThat(ConfigCompletion.replaced(config.build(), ConfigCompletion.merge(config.build(), completion), 1))
                .singleElement()
                .asString()
                .endsWith("input 'x10' removed; and 989 more");
    }

    @Test
    void keepsWhatTheBackendLeavesOpen() {
        ModelConfig config = Configs.valid("input { name: \"x\" } output { name: \"y\" } dynamic_batching {}");

        assertThat(ConfigCompletion.merge(config, ModelCompletion.EMPTY)).isEqualTo(config);
    }

    @Test
    void grantsDynamicBatchingOnlyWhereNoSchedulerIsChosen() {
        ModelCompletion completion = ModelCompletion.EMPTY.withDynamicBatching();
        ModelConfig sequence = Configs.config("sequence_batching {}");
        ModelConfig dynamic = Configs.config("dynamic_batching { preserve_ordering: true }");

        assertThat(ConfigCompletion.merge(Configs.config(""), completion))
                .isEqualTo(Configs.config("dynamic_batching {}"));
        assertThat(ConfigCompletion.merge(sequence, completion)).isEqualTo(sequence);
        assertThat(ConfigCompletion.merge(dynamic, completion)).isEqualTo(dynamic);
    }

    @Test
    void addsASchedulerWithOptionsOnlyWhereNoneIsChosen() {
        ModelConfig plain = Configs.config("");
        ModelConfig dynamic = Configs.config("dynamic_batching { preserve_ordering: true }");
        ModelCompletion delay =
                ModelCompletion.EMPTY.withScheduling("{\"dynamic_batching\": {\"max_queue_delay_microseconds\": 100}}");
        ModelCompletion sequences = ModelCompletion.EMPTY.withScheduling(
                "{\"sequence_batching\": {\"max_sequence_idle_microseconds\": 5}}");

        assertThat(ConfigCompletion.merge(plain, delay))
                .isEqualTo(Configs.config("dynamic_batching { max_queue_delay_microseconds: 100 }"));
        assertThat(ConfigCompletion.merge(plain, sequences))
                .isEqualTo(Configs.config("sequence_batching { max_sequence_idle_microseconds: 5 }"));
        assertThat(ConfigCompletion.merge(dynamic, sequences)).isEqualTo(dynamic);
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "{}",
                "[]",
                "{\"max_batch_size\": 3}",
                "{\"ensemble_scheduling\": {}}",
                "{\"dynamic_batching\": {\"delay\": 1}}",
            })
    void refusesASchedulerThatIsNone(String json) {
        ModelConfig plain = Configs.config("name: 'm' backend: 'b'");
        ModelCompletion completion = ModelCompletion.EMPTY.withScheduling(json);

        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> ConfigCompletion.merge(plain, completion))
                .withMessageStartingWith("model 'm': scheduling that backend 'b' adds: ")
                .satisfies(e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    @Test
    void takesTheTransactionPolicyOnlyWhereNoneIsChosen() {
        ModelCompletion completion = ModelCompletion.EMPTY.withDecoupled(true);
        ModelConfig chosen = Configs.config("model_transaction_policy { decoupled: false }");

        assertThat(ConfigCompletion.merge(Configs.config(""), completion))
                .isEqualTo(Configs.config("model_transaction_policy { decoupled: true }"));
        assertThat(ConfigCompletion.merge(chosen, completion)).isEqualTo(chosen);
    }

    @ParameterizedTest
    @CsvSource({"'', 4", "max_batch_size: 2, 2", "max_batch_size: 16, 16"})
    void takesTheProposedBatchSizeOnlyWhereNoneIsConfigured(String text, int expected) {
        ModelCompletion proposed = ModelCompletion.EMPTY.withProposedMaxBatchSize(4);
        ModelConfig config = Configs.config(text);

        ConfigCompletion.checkBatchSize(config, proposed);
        assertThat(ConfigCompletion.merge(config, proposed).getMaxBatchSize()).isEqualTo(expected);
    }

    @Test
    void refusesABatchSizeBeyondTheLimit() {
        ModelCompletion limited = ModelCompletion.EMPTY.withMaxBatchSizeLimit(8);
        ModelCompletion unbatched = ModelCompletion.EMPTY.withMaxBatchSizeLimit(0);

        assertRefused("max_batch_size: 9", limited, "9 (expected: at most 8");
        assertRefused(
                "max_batch_size: 2147483647", limited.withProposedMaxBatchSize(4), "2147483647 (expected: at most 8");
        assertRefused("max_batch_size: 1", unbatched, "1 (expected: at most 0");
        for (String text : List.of("", "max_batch_size: 0", "max_batch_size: 8")) {
            ModelConfig config = Configs.config(text);
            ConfigCompletion.checkBatchSize(config, limited);
            assertThat(ConfigCompletion.merge(config, limited)).isEqualTo(config);
        }
        ConfigCompletion.checkBatchSize(Configs.config(""), unbatched);
    }

    private static void assertRefused(String text, ModelCompletion completion, String reason) {
        ModelConfig config = Configs.config("name: 'm' backend: 'b' " + text);

        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(() -> ConfigCompletion.checkBatchSize(config, completion))
                .withMessage("model 'm': max_batch_size: " + reason + ", which backend 'b' allows)")
                .returns(ErrorCode.INVALID_ARGUMENT, InferenceException::code);
    }

    /** The dimension that the backend takes for a batch is the first one of the tensors. */
    @Test
    void keepsABatchSizeOfZeroThatIsWritten() {
        ModelConfig config = Configs.config("max_batch_size: 0 output { name: 'y' label_filename: 'labels.txt' }");
        ModelCompletion completion = ModelCompletion.EMPTY
                .withProposedMaxBatchSize(4)
                .withDynamicBatching()
                .withDecoupled(true)
                .withInputs(List.of(
                        TensorSpec.of("x", DataType.FP32, Shape.of(3)).with(TensorSpec.Trait.OPTIONAL),
                        TensorSpec.of("one", DataType.FP32, Shape.of(1)).withReshape(Shape.SCALAR),
                        TensorSpec.of("ragged", DataType.FP32, Shape.of(-1)).with(TensorSpec.Trait.RAGGED),
                        TensorSpec.of("sizes", DataType.INT32, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR)))
                .withOutputs(List.of(TensorSpec.of("y", DataType.FP16, Shape.of(-1, 3))));

        ModelCompletion kept = ConfigCompletion.withinBatchSize(config, completion);

        assertThat(ConfigCompletion.merge(config, kept)).isEqualTo(Configs.config("""
                input { name: "x" data_type: TYPE_FP32 dims: [ -1, 3 ] optional: true }
                input { name: "one" data_type: TYPE_FP32 dims: -1 }
                input { name: "ragged" data_type: TYPE_FP32 dims: [ -1, -1 ] }
                input { name: "sizes" data_type: TYPE_INT32 dims: 2 is_shape_tensor: true }
                output { name: "y" data_type: TYPE_FP16 dims: [ -1, -1, 3 ] label_filename: "labels.txt" }
                model_transaction_policy { decoupled: true }
                """));
    }

    @Test
    void changesNoCompletionThatKeepsToTheBatchSize() {
        ModelCompletion batching =
                ModelCompletion.EMPTY.withProposedMaxBatchSize(8).withDynamicBatching();
        ModelCompletion none = ModelCompletion.EMPTY.withProposedMaxBatchSize(0);
        ModelCompletion limited = ModelCompletion.EMPTY.withMaxBatchSizeLimit(8).withDynamicBatching();

        assertThat(ConfigCompletion.withinBatchSize(Configs.config("max_batch_size: 8"), batching))
                .isEqualTo(batching);
        assertThat(ConfigCompletion.withinBatchSize(Configs.config(""), none)).isEqualTo(none);
        assertThat(ConfigCompletion.withinBatchSize(Configs.config(""), limited))
                .isEqualTo(limited);
        assertThat(ConfigCompletion.withinBatchSize(Configs.config(""), ModelCompletion.EMPTY))
                .isEqualTo(ModelCompletion.EMPTY);
    }
}
