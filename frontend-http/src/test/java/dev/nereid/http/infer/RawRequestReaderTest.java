package dev.nereid.http.infer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelMetadata;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

/** Raw requests. */
class RawRequestReaderTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final FakeInferenceServer server = new FakeInferenceServer(memory);
    private final RequestMemory requestMemory = new RequestMemory(memory, server.sharedMemory());

    @AfterEach
    void releaseMemory() {
        requestMemory.run();
    }

    @Test
    void deducesTheOneVariableDimension() {
        InferRequestBody request = read(8, new byte[24], TensorSpec.of("X", DataType.FP32, Shape.of(-1, 2)));

        InputTensor input = request.inputs().getFirst();
        assertThat(input.name()).isEqualTo("X");
        assertThat(input.datatype()).isEqualTo("FP32");
        assertThat(input.dims()).containsExactly(1, 3, 2);
        assertThat(request.outputs().format("Y")).isEqualTo(RequestedOutputs.Format.BINARY);
    }

    @Test
    void readsNoDataAsNoElements() {
        InferRequestBody request = read(0, new byte[0], TensorSpec.of("X", DataType.FP32, Shape.of(-1)));

        assertThat(request.inputs().getFirst().dims()).containsExactly(0);
    }

    @Test
    void putsTheLengthBeforeAString() {
        InferRequestBody request = read(0, new byte[] {'h', 'i'}, TensorSpec.of("X", DataType.BYTES, Shape.of(1)));

        assertThat(request.inputs().getFirst().data().toArray(ValueLayout.JAVA_BYTE))
                .containsExactly(2, 0, 0, 0, 'h', 'i');
    }

    @Test
    void refusesStringsOfOtherShapes() {
        assertThatThrownBy(() -> read(8, new byte[2], TensorSpec.of("X", DataType.BYTES, Shape.of(-1))))
                .hasMessage("[request id: <id_unknown>] For BYTE datatype raw input 'X', the model must have input"
                        + " shape [1]");
    }

    @Test
    void refusesSizesThatFitNoShape() {
        assertThatThrownBy(() -> read(0, new byte[7], TensorSpec.of("X", DataType.FP32, Shape.of(-1))))
                .hasMessage("[request id: <id_unknown>] input byte size mismatch for input 'raw_input' for model 'm'."
                        + " Expected 4, got 7");
        assertThatThrownBy(() -> read(0, new byte[4], TensorSpec.of("X", DataType.FP32, Shape.of(2))))
                .hasMessageEndingWith("Expected 8, got 4");
    }

    @Test
    void refusesShapesThatItCannotDeduce() {
        assertThatThrownBy(() -> read(0, new byte[4], TensorSpec.of("X", DataType.FP32, Shape.of(-1, -1))))
                .hasMessage("[request id: <id_unknown>] The shape of the raw input 'X' can not be deduced because there"
                        + " are more than one variable-sized dimension");
        TensorSpec input = TensorSpec.of("X", DataType.FP32, Shape.of(1));
        assertThatThrownBy(() -> read(0, new byte[4], input, TensorSpec.of("Z", DataType.FP32, Shape.of(1))))
                .hasMessage("[request id: <id_unknown>] Raw request must only have 1 input (found 1) to be deduced but"
                        + " got 2 inputs in 'm' model configuration");
    }

    private InferRequestBody read(int maxBatchSize, byte[] body, TensorSpec... inputs) {
        ModelMetadata model = new ModelMetadata("m", List.of(1L), "p", maxBatchSize, false, List.of(inputs), List.of());
        return new RawRequestReader(model).read(MemorySegment.ofArray(body), requestMemory);
    }
}
