package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.ModelVersion;
import dev.nereid.scheduler.request.RequestInputs;
import dev.nereid.scheduler.request.RequestOutputs;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class EqualInputsTest {
    /** A request with its content. */
    private static final class Candidate implements EqualInputs.Candidate {
        private final CheckedRequest request;
        private final byte @Nullable [] content;

        Candidate(EqualInputs equalInputs, CheckedRequest request) {
            this.request = request;
            this.content = equalInputs.content(request);
        }

        @Override
        public CheckedRequest checked() {
            return request;
        }

        @Override
        public byte @Nullable [] content() {
            return content;
        }
    }

    private static final Shape VARIABLE = Shape.of(Shape.VARIABLE);
    private static final MemoryPlace DEVICE = new MemoryPlace(MemoryPlace.Kind.GPU, 0);

    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    @Test
    void comparesShapesWithVariableDimensions() {
        ModelSettings model = model(TensorSpec.of("A", DataType.FP32, VARIABLE));

        assertThat(join(model, a(model, 1, 2), a(model, 3, 2))).isTrue();
        assertThat(join(model, a(model, 1, 2), a(model, 1, 3))).isFalse();
    }

    @Test
    void looksAtTheShapeThatTheBackendSeesToo() {
        ModelSettings model =
                model(TensorSpec.of("A", DataType.FP32, Shape.of(4)).withReshape(VARIABLE));

        assertThat(join(model, a(model, 1, 2), a(model, 1, 3))).isFalse();
    }

    /** A fixed shape was checked before, for each request separately. */
    @Test
    void ignoresInputsOfFixedShape() {
        ModelSettings model = model(TensorSpec.of("A", DataType.FP32, Shape.of(2)));

        assertThat(join(model, a(model, 1, 2), a(model, 1, 3))).isTrue();
    }

    @Test
    void takesRaggedInputsTogether() {
        ModelSettings model = model(TensorSpec.of("A", DataType.FP32, VARIABLE).with(TensorSpec.Trait.RAGGED));

        assertThat(join(model, a(model, 1, 2), a(model, 1, 3))).isTrue();
    }

    @Test
    void comparesNamesWhereInputsAreOptional() {
        ModelSettings model = model(
                TensorSpec.of("A", DataType.FP32, Shape.of(2)),
                TensorSpec.of("B", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL),
                TensorSpec.of("C", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL));

        assertThat(join(model, with(model, "A", "B"), with(model, "A", "B"))).isTrue();
        assertThat(join(model, with(model, "A", "B"), with(model, "A"))).isFalse();
        assertThat(join(model, with(model, "A", "B"), with(model, "A", "C"))).isFalse();
    }

    @Test
    void needsTheSameInputsIfAllAreOptional() {
        ModelSettings model = model(
                TensorSpec.of("A", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL),
                TensorSpec.of("B", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL));

        assertThat(join(model, with(model, "A"), with(model, "A"))).isTrue();
        assertThat(join(model, with(model, "A"), with(model, "B"))).isFalse();
    }

    @Test
    void comparesShapesOfEachRank() {
        ModelSettings model = model(TensorSpec.of("A", DataType.FP32, VARIABLE));
        CheckedRequest deeper =
                Requests.to(model, memory).floats("A", Shape.of(1, 2, 1), 0).of(1);

        assertThat(join(model, a(model, 1, 2), deeper)).isFalse();
    }

    @Test
    void comparesContentOfShapeTensors() {
        ModelSettings model =
                model(TensorSpec.of("S", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR));

        assertThat(join(model, shapeTensor(model, 4, 5), shapeTensor(model, 4, 5)))
                .isTrue();
        assertThat(join(model, shapeTensor(model, 4, 5), shapeTensor(model, 4, 6)))
                .isFalse();
        assertThat(join(model, shapeTensor(model, 4, 5), shapeTensor(model, 4))).isFalse();
    }

    @Test
    void neverJoinsShapeTensorsThatCannotBeRead() {
        ModelSettings model =
                model(TensorSpec.of("S", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR));

        assertThat(join(model, onDevice(model), onDevice(model))).isFalse();
        assertThat(join(model, shapeTensor(model, 4, 5), onDevice(model))).isFalse();
        long[] largest = new long[65_536 / Long.BYTES];
        assertThat(join(model, shapeTensor(model, largest), shapeTensor(model, largest)))
                .isTrue();
        long[] large = new long[largest.length + 1];
        assertThat(join(model, shapeTensor(model, large), shapeTensor(model, large)))
                .isFalse();
    }

    @Test
    void ignoresTheBatchDimension() {
        ModelSettings model = model(
                TensorSpec.of("A", DataType.FP32, VARIABLE),
                TensorSpec.of("B", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL));

        assertThat(join(model, a(model, 1, 2), a(model, 5, 2))).isTrue();
    }

    @Test
    void readsNoMemoryOfRequestsThatAreGone() {
        ModelSettings model =
                model(TensorSpec.of("S", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR));
        EqualInputs equalInputs = new EqualInputs(model);
        Candidate waiting = new Candidate(equalInputs, shapeTensor(model, 1, 2));
        Candidate gone = new Candidate(equalInputs, shapeTensor(model, 1, 2));
        gone.checked().releaseInputs();

        assertThat(equalInputs.join(waiting, gone)).isTrue();
        waiting.checked().releaseInputs();
    }

    private boolean join(ModelSettings model, CheckedRequest one, CheckedRequest other) {
        EqualInputs equalInputs = new EqualInputs(model);
        try {
            return equalInputs.join(new Candidate(equalInputs, one), new Candidate(equalInputs, other));
        } finally {
            one.releaseInputs();
            other.releaseInputs();
        }
    }

    private static ModelSettings model(TensorSpec... inputs) {
        ModelSettingsBuilder builder = ModelSettings.builder("m", 1).maxBatchSize(8);
        for (TensorSpec input : inputs) {
            builder.input(input);
        }
        return builder.build();
    }

    private CheckedRequest a(ModelSettings model, int items, int width) {
        return Requests.to(model, memory).floats("A", Shape.of(items, width), 0).of(items);
    }

    private CheckedRequest with(ModelSettings model, String... names) {
        Requests requests = Requests.to(model, memory);
        for (String name : names) {
            requests.floats(name, Shape.of(1, 2), 0);
        }
        return requests.of(1);
    }

    /** A shape tensor of two numbers in memory of a device. */
    private static CheckedRequest onDevice(ModelSettings model) {
        Tensor tensor = Tensor.of(DataType.INT64, Shape.of(2), Arena.ofAuto().allocate(16), DEVICE);
        return new CheckedRequest(
                new ModelVersion(model.name(), 1),
                "",
                RequestInputs.of(List.of(new NamedTensor("S", tensor)), 1, () -> {}),
                RequestOutputs.all(List.of()),
                Map.of(),
                RequestOptions.DEFAULT,
                0);
    }

    private CheckedRequest shapeTensor(ModelSettings model, long... values) {
        return Requests.to(model, memory)
                .longs("S", Shape.of(values.length), values)
                .of(1);
    }
}
