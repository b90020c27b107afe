package dev.nereid.backend.tensorrt;

import static dev.nereid.backend.tensorrt.EngineTensors.input;
import static dev.nereid.backend.tensorrt.EngineTensors.output;
import static dev.nereid.backend.tensorrt.EngineTensors.range;
import static dev.nereid.backend.tensorrt.EngineTensors.shapeTensor;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.backend.tensorrt.runtime.Engine;
import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.backend.tensorrt.runtime.ProfileRange;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class EngineCompletionTest {
    private static final ModelSettings EMPTY = ModelSettings.builder("m", 1).build();
    private static final EngineTensor IN =
            input("IN", Shape.of(-1, 3, -1), range(Shape.of(1, 3, 1), Shape.of(4, 3, 8), Shape.of(16, 3, 8)));
    private static final EngineTensor OUT = output("OUT", Shape.of(-1));

    @Test
    void batchesUpToTheLargestShapeOfTheProfiles() {
        assertThat(EngineCompletion.isNeeded(EMPTY)).isTrue();
        ModelCompletion completion = EngineCompletion.of(EMPTY, engine(IN, OUT));

        assertThat(completion.proposedMaxBatchSize()).hasValue(16);
        assertThat(completion.maxBatchSizeLimit()).hasValue(16);
        assertThat(completion.dynamicBatching()).isTrue();
        assertThat(completion.inputs()).containsExactly(TensorSpec.of("IN", DataType.FP32, Shape.of(3, -1)));
        assertThat(completion.outputs())
                .containsExactly(
                        TensorSpec.of("OUT", DataType.FP32, Shape.of(1)).withReshape(Shape.SCALAR));
    }

    /** As the reference server: what one of the configured profiles allows for all inputs. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            quoteCharacter = '`',
            value = {
                "{} | 4",
                "{'instance_group':[{'profile':[]}]} | 4",
                "{'instance_group':[{'profile':['0']}]} | 4",
                "{'instance_group':[{'profile':['1']}]} | 8",
                "{'instance_group':[{'profile':['2']}]} | 2",
                "{'instance_group':[{'profile':['0']},{'profile':['2','1']}]} | 8",
            })
    void countsTheConfiguredProfilesAndInEachTheInputWithTheSmallestLimit(String config, int limit) {
        EngineTensor one = input("IN", Shape.of(-1), upTo(4), upTo(16), upTo(2));
        EngineTensor other = input("MASK", Shape.of(-1), upTo(16), upTo(8), upTo(16));
        ModelSettings settings =
                ModelSettings.builder("m", 1).json(config.replace('\'', '"')).build();

        ModelCompletion completion = EngineCompletion.of(settings, engine(one, other, OUT));

        assertThat(completion.proposedMaxBatchSize()).hasValue(limit);
        assertThat(completion.maxBatchSizeLimit()).hasValue(limit);
    }

    private static Engine engine(EngineTensor... tensors) {
        return new FakeEngine(
                new HostDriver(),
                Stream.of(tensors)
                        .mapToInt(tensor -> tensor.ranges().size())
                        .max()
                        .orElse(1),
                tensors);
    }

    private static ProfileRange upTo(int items) {
        return range(Shape.of(1), Shape.of(1), Shape.of(items));
    }

    @Test
    void limitsAConfiguredBatchSizeToTheLargestShape() {
        for (int size : new int[] {2, 17}) {
            ModelSettings configured =
                    ModelSettings.builder("m", 1).maxBatchSize(size).build();
            ModelCompletion completion = EngineCompletion.of(configured, engine(IN, OUT));

            assertThat(completion.maxBatchSizeLimit()).hasValue(16);
            assertThat(completion.inputs()).containsExactly(TensorSpec.of("IN", DataType.FP32, Shape.of(3, -1)));
        }
    }

    @Test
    void doesNotBatchAnEngineWithFixedShapes() {
        EngineTensor fixed = input("IN", Shape.of(8, 3), range(Shape.of(8, 3), Shape.of(8, 3), Shape.of(8, 3)));
        ModelCompletion completion = EngineCompletion.of(EMPTY, engine(fixed, OUT));

        assertThat(completion.proposedMaxBatchSize()).hasValue(0);
        assertThat(completion.maxBatchSizeLimit()).hasValue(0);
        assertThat(completion.dynamicBatching()).isFalse();
        assertThat(completion.inputs()).containsExactly(TensorSpec.of("IN", DataType.FP32, Shape.of(8, 3)));
        ModelSettings batching = ModelSettings.builder("m", 1).maxBatchSize(2).build();
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> EngineCompletion.of(batching, engine(fixed, OUT)))
                .withMessage("autofill failed for model 'm': model does not support batching while non-zero"
                        + " max_batch_size is specified");
    }

    @Test
    void marksShapeTensors() {
        EngineTensor size = shapeTensor("SIZE", Shape.of(2), range(Shape.of(1, 1), Shape.of(2, 2), Shape.of(4, 4)));

        assertThat(EngineCompletion.of(EMPTY, engine(IN, size, OUT)).inputs().get(1))
                .isEqualTo(TensorSpec.of("SIZE", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR));
    }
}
