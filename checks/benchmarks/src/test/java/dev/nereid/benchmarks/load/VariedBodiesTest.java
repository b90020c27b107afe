package dev.nereid.benchmarks.load;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.util.List;
import org.junit.jupiter.api.Test;

final class VariedBodiesTest {
    @Test
    void putsANumberInPlaceOfTheIdOfEachMessage() {
        InferBody body = VariedBodies.IDS.bodies().getFirst();
        GrpcRequest request = GrpcRequest.of(body.grpc("identity").toByteArray(), VariedBodies.IDS.id(), 1);

        String first = new String(request.bytes(1), StandardCharsets.ISO_8859_1);
        String second = new String(request.bytes(255), StandardCharsets.ISO_8859_1);

        assertThat(first).contains("0000000000000001").doesNotContain("00000000000000ff");
        assertThat(second).contains("00000000000000ff");
    }

    @Test
    void hasMoreShapesThanAServerRemembers() {
        List<InferBody> bodies = VariedBodies.MANY_SHAPES.bodies();

        assertThat(bodies.stream().map(body -> body.shape()[1]).distinct()).hasSizeGreaterThan(64);
        assertThat(VariedBodies.MANY_SHAPES.arguments()).hasSize(1 + 2 * bodies.size());
    }
}
