package dev.nereid.grpc.stream;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.grpc.wire.SharedTensors;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeResponse;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Set;
import org.junit.jupiter.api.Test;

final class OutgoingMessageTest {
    private static final long OVERHEAD = 512;

    private static NamedTensor output(String name, int bytes) {
        return new NamedTensor(
                name, Tensor.of(DataType.UINT8, Shape.of(bytes), MemorySegment.ofArray(new byte[bytes])));
    }

    @Test
    void countsTheOutputsThatAreSent() {
        FakeResponse response = FakeResponse.of(false, output("A", 1_000), output("B", 20));

        assertThat(OutgoingMessage.Response.of(response, SharedTensors.NONE).byteSize())
                .isEqualTo(OVERHEAD + 1_020);
        assertThat(OutgoingMessage.Response.of(response, new SharedTensors(Set.of("A"), List.of()))
                        .byteSize())
                .isEqualTo(OVERHEAD + 20);
    }
}
