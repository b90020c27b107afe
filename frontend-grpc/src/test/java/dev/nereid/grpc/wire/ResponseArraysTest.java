package dev.nereid.grpc.wire;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeResponse;
import inference.ModelInferResponse;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** Tests that arrays are reused and never show an earlier response. */
final class ResponseArraysTest {
    private final ResponseArrays arrays = new ResponseArrays();

    @Test
    void takesTheSameArrayAgain() {
        byte[] first = arrays.take();
        arrays.release(first);

        assertThat(arrays.take()).isSameAs(first);
    }

    @Test
    void takesAnotherArrayWhileTheFirstIsInUse() {
        byte[] first = arrays.take();

        assertThat(arrays.take()).isNotSameAs(first);
    }

    @Test
    void takesAnArrayPerThread() {
        byte[] first = arrays.take();
        arrays.release(first);

        assertThat(CompletableFuture.supplyAsync(arrays::take, Thread::startVirtualThread)
                        .join())
                .isNotSameAs(first);
    }

    @Test
    void showsNothingOfTheResponseBefore() throws IOException {
        byte[] array = new byte[300];
        Arrays.fill(array, (byte) 0xFF);

        for (int size : new int[] {200, 100, 0, 1_000, 100, 16_384, 16_385, 20}) {
            byte[] data = new byte[size];
            Arrays.fill(data, (byte) size);
            ModelInferResponse read = written(array, data);

            assertThat(read.getOutputs(0).getName()).isEqualTo("OUTPUT0");
            assertThat(read.getRawOutputContents(0).toByteArray()).isEqualTo(data);
        }
    }

    private static ModelInferResponse written(byte[] array, byte[] data) throws IOException {
        InferResponse response = FakeResponse.of(
                true,
                new NamedTensor(
                        "OUTPUT0", Tensor.of(DataType.UINT8, Shape.of(data.length), MemorySegment.ofArray(data))));
        try (InferResponseMessage message = InferResponseMessage.of(response, SharedTensors.NONE, array)) {
            return ModelInferResponse.parseFrom(message);
        }
    }
}
