package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.input;
import static dev.nereid.backend.tensorrt.EngineTensors.output;
import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static dev.nereid.backend.tensorrt.EngineTensors.shapeTensor;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.tensorrt.Bindings.Role;
import dev.nereid.backend.tensorrt.runtime.EngineFormat;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class BindingsTest {
    private static final EngineFormat CHW32 = new EngineFormat("kCHW32", 1, 32);
    private static final EngineFormat HWC = new EngineFormat("kHWC", -1, 1);
    private static final EngineTensor IN =
            input("IN", Shape.of(-1, 3), range(Shape.of(1, 3), Shape.of(1, 3), Shape.of(4, 3)));
    private static final EngineTensor OUT = output("OUT", Shape.of(-1, 2));

    private final ModelSettingsBuilder model = ModelSettings.builder("m", 1).maxBatchSize(4);

    private void assertDiffers(String message, EngineTensor... tensors) {
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> Bindings.of(List.of(tensors), model.build()))
                .withMessage(message);
    }

    @Test
    void findsInputsOutputsAndStates() {
        model.input(TensorSpec.of("IN", DataType.FP32, Shape.of(3)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .sequenceBatching(SequenceBatching.of(SequenceBatching.Strategy.DIRECT, Duration.ofSeconds(1))
                        .with(StateSpec.of("S_IN", "S_OUT", DataType.FP32, Shape.of(5))));
        EngineTensor present = input("S_IN", Shape.of(-1, 5), range(Shape.of(1, 5), Shape.of(1, 5), Shape.of(4, 5)));
        Bindings bindings = Bindings.of(
                List.of(IN, present, OUT, output("S_OUT", Shape.of(-1, 5)), output("DEBUG", Shape.of(-1))),
                model.build());

        assertThat(bindings.hasStates()).isTrue();
        assertThat(bindings.inputs()).extracting(Bindings.Binding::role).containsExactly(Role.CLIENT, Role.STATE);
        assertThat(bindings.outputs())
                .extracting(Bindings.Binding::role)
                .containsExactly(Role.CLIENT, Role.STATE, Role.NONE);
    }

    @Test
    void namesMissingTensors() {
        model.input(TensorSpec.of("IN", DataType.FP32, Shape.of(3)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        assertDiffers(
                "model 'm': the configuration has the output 'OUT', which the engine lacks",
                IN,
                output("OTHER", Shape.of(-1)));
        assertDiffers("model 'm': the configuration has the input 'IN', which the engine lacks", OUT);
        model.input(TensorSpec.of("MORE", DataType.FP32, Shape.of(3)));
        assertDiffers("model 'm': the configuration has the input 'MORE', which the engine lacks", IN, OUT);
    }

    @Test
    void namesInputsThatTheConfigurationLacks() {
        model.output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        assertDiffers("model 'm': the engine has the input 'IN' [-1,3], which the configuration lacks", IN, OUT);
    }

    @Test
    void comparesTypesAndDimensions() {
        model.input(TensorSpec.of("IN", DataType.FP16, Shape.of(3)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        assertDiffers("tensor 'IN' of model 'm': type FP16 (expected: FP32, as in the engine)", IN, OUT);
        assertDiffers(
                "tensor 'IN' of model 'm': type FP16 (expected: UINT8, as in the engine)",
                new EngineTensor("IN", true, "kFP8", Shape.of(-1, 3), false, EngineFormat.LINEAR, List.of()),
                OUT);
    }

    @Test
    void comparesDimensions() {
        model.input(TensorSpec.of("IN", DataType.FP32, Shape.of(4)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        assertDiffers("tensor 'IN' of model 'm': dims [4] (expected: [3], as in the engine)", IN, OUT);
        assertDiffers(
                "tensor 'IN' of model 'm': the engine has [4,3] (expected: a variable first dimension, since"
                        + " max_batch_size is 4)",
                input("IN", Shape.of(4, 3)),
                OUT);
    }

    @Test
    void refusesWhatItDoesNotSupport() {
        model.input(TensorSpec.of("IN", DataType.FP32, Shape.of(3)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        assertDiffers(
                "tensor 'IN': type kINT4 (expected: a type of at least 8 bits)",
                new EngineTensor("IN", true, "kINT4", Shape.of(-1, 3), false, EngineFormat.LINEAR, List.of()),
                OUT);
    }

    private static EngineTensor inFormat(String name, boolean isInput, Shape shape, EngineFormat format) {
        return new EngineTensor(name, isInput, "kFLOAT", shape, false, format, List.of());
    }

    private static TensorSpec announced(String name, Shape dims) {
        return TensorSpec.of(name, DataType.FP32, dims).with(TensorSpec.Trait.NON_LINEAR_FORMAT);
    }

    @Test
    void takesFormatsThatTheConfigurationAnnounces() {
        model.input(announced("IN", Shape.of(64, 2, 2)))
                .input(announced("PADDED", Shape.of(13, -1, 2)))
                .output(announced("OUT", Shape.of(8, 2, 2)))
                .output(announced("ANY", Shape.of(-1, 2, 2)));
        List<EngineTensor> tensors = List.of(
                inFormat("IN", true, Shape.of(-1, 64, 2, 2), CHW32),
                inFormat("PADDED", true, Shape.of(-1, 13, -1, 2), CHW32),
                inFormat("OUT", false, Shape.of(-1, 8, 2, 2), new EngineFormat("kHWC8", 1, 8)),
                inFormat("ANY", false, Shape.of(-1, -1, 2, 2), HWC));

        Bindings bindings = Bindings.of(tensors, model.build());

        assertThat(bindings.inputs()).hasSize(2);
        assertThat(bindings.outputs()).hasSize(2);
        assertThat(TensorFormats.paddedInputs(tensors, model.build()))
                .containsExactly(Map.entry("PADDED", Shape.of(32, -1, -1)));
    }

    @Test
    void padsToFullVectors() {
        EngineTensor tensor = inFormat("IN", true, Shape.of(-1, 13, -1, 2), CHW32);

        assertThat(CHW32.padded(Shape.of(5, 13, 7, 2))).isEqualTo(Shape.of(5, 32, 7, 2));
        assertThat(CHW32.padded(Shape.of(5, 64, 7, 2))).isEqualTo(Shape.of(5, 64, 7, 2));
        assertThat(CHW32.padded(Shape.of(5, 65, 7, 2))).isEqualTo(Shape.of(5, 96, 7, 2));
        assertThat(HWC.padded(Shape.of(5, 13, 7, 2))).isEqualTo(Shape.of(5, 13, 7, 2));
        assertThat(EngineFormat.LINEAR.padded(Shape.of(5))).isEqualTo(Shape.of(5));
        assertThat(tensor.unpadded(Shape.of(5, 32, 7, 2))).isEqualTo(Shape.of(5, 13, 7, 2));
        assertThat(IN.unpadded(Shape.of(5, 3))).isEqualTo(Shape.of(5, 3));
        for (long other : new long[] {1, 31, 33, 64, 4096}) {
            assertThat(tensor.unpadded(Shape.of(5, other, 7, 2)))
                    .as("not its size")
                    .isEqualTo(Shape.of(5, other, 7, 2));
        }
    }

    @Test
    void refusesFormatsThatAreNotAnnounced() {
        model.input(TensorSpec.of("IN", DataType.FP32, Shape.of(64, 2, 2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        assertDiffers(
                "tensor 'IN': format kCHW32 (expected: kLINEAR, elements in row-major order, unless the configuration"
                        + " has is_non_linear_format_io: true for the tensor)",
                inFormat("IN", true, Shape.of(-1, 64, 2, 2), CHW32),
                OUT);
    }

    @Test
    void refusesFormatsOfWhichItDoesNotKnowThePadding() {
        model.input(announced("IN", Shape.of(-1, 2, 2))).output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        for (EngineFormat format :
                List.of(new EngineFormat("kDLA_LINEAR", -1, 1), new EngineFormat("kDLA_HWC4", 1, 4))) {
            assertDiffers(
                    "tensor 'IN': format " + format.name() + " (expected: kLINEAR, elements in row-major order, kHWC,"
                            + " or one that joins channels to vectors, such as kCHW32)",
                    inFormat("IN", true, Shape.of(-1, 3, 2, 2), format),
                    OUT);
        }
        assertDiffers(
                "tensor 'IN': format kCHW32 of [-1,-1,2,2] joins dimension 1 to vectors of 32 (expected: a dimension"
                        + " that is not variable, so that the padding is known)",
                inFormat("IN", true, Shape.of(-1, -1, 2, 2), CHW32),
                OUT);
        assertDiffers(
                "tensor 'IN': format kCHW32 of [-1,64,2,2] joins dimension 1 to vectors of 32, and dims has -1 there"
                        + " (expected: 64, as in the engine)",
                inFormat("IN", true, Shape.of(-1, 64, 2, 2), CHW32),
                OUT);
        for (int dimension : new int[] {0, 3}) {
            assertDiffers(
                    "tensor 'IN': format kCHW32 of [-1,2,2] joins dimension " + dimension
                            + " to vectors (expected: one of each item, from 1 on)",
                    inFormat("IN", true, Shape.of(-1, 2, 2), new EngineFormat("kCHW32", dimension, 32)),
                    OUT);
        }
    }

    @Test
    void refusesOutputsWithPadding() {
        model.input(TensorSpec.of("IN", DataType.FP32, Shape.of(3))).output(announced("OUT", Shape.of(13, 2, 2)));
        assertDiffers(
                "tensor 'OUT': format kCHW32 of [-1,13,2,2] has padding (expected: for an output, a multiple of 32 in"
                        + " dimension 1)",
                IN,
                inFormat("OUT", false, Shape.of(-1, 13, 2, 2), CHW32));
    }

    @Test
    void comparesShapeTensors() {
        model.input(TensorSpec.of("SIZE", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
        EngineTensor size = shapeTensor("SIZE", Shape.of(2));

        assertThat(Bindings.of(List.of(size, OUT), model.build()).inputs()).hasSize(1);
        assertDiffers(
                "input 'SIZE' of model 'm': is_shape_tensor: true (expected: false, as in the engine)",
                new EngineTensor("SIZE", true, "kINT64", Shape.of(2), false, EngineFormat.LINEAR, List.of()),
                OUT);
    }

    @Test
    void takesRaggedInputsWithoutABatchDimension() {
        ModelSettings settings = ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE))
                        .with(TensorSpec.Trait.RAGGED))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
                .build();

        assertThat(Bindings.of(List.of(input("IN", Shape.of(-1)), output("OUT", Shape.of(-1, 1))), settings)
                        .inputs())
                .hasSize(1);
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() ->
                        Bindings.of(List.of(input("IN", Shape.of(-1, -1)), output("OUT", Shape.of(-1, 1))), settings))
                .withMessage("input 'IN' of model 'm': the engine has [-1,-1] (expected: [-1], since allow_ragged_batch"
                        + " is true: the elements of all requests in one dimension)");
    }
}
