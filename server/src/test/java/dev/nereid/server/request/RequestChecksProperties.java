package dev.nereid.server.request;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.Map;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;
import net.jqwik.api.Tag;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.Size;

/** Checks that any client input ends in a valid request or a client error. */
@Tag("slow")
class RequestChecksProperties {
    @Provide
    Arbitrary<long[]> hostileShapes() {
        Arbitrary<Long> small = Arbitraries.longs().between(-2, 5);
        Arbitrary<Long> powers = Arbitraries.integers().between(0, 63).map(bits -> 1L << bits);
        return Arbitraries.oneOf(small, powers, Arbitraries.longs())
                .array(long[].class)
                .ofMaxSize(5);
    }

    @Property
    void neverFailsInAnotherWay(
            @ForAll("hostileShapes") long[] dims,
            @ForAll DataType type,
            @ForAll @IntRange(max = 64) int byteSize,
            @ForAll @IntRange(max = 4) int maxBatchSize,
            @ForAll @IntRange(max = 4) int rank) {
        long[] variable = new long[rank];
        java.util.Arrays.fill(variable, Shape.VARIABLE);
        RequestChecks checks = RequestChecks.forModel(
                ModelSettings.builder("m", 1)
                        .maxBatchSize(maxBatchSize)
                        .input(TensorSpec.of("a", type, Shape.of(variable)))
                        .build(),
                Map.of());
        InputTensor input = InferRequests.zeros("a", type.name(), byteSize, dims);

        try {
            CheckedRequest checked = checks.check(InferRequests.request(input), 0);

            Tensor tensor = checked.inputs().getFirst().tensor();
            assertThat(tensor.shape().toArray()).isEqualTo(dims);
            assertThat(tensor.byteSize()).isEqualTo(byteSize);
            assertThat(checked.batchSize()).isEqualTo(maxBatchSize == 0 ? 1 : (int) dims[0]);
        } catch (InferenceException e) {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        }
    }

    @Property
    void readsNoByteBeyondTheEnd(@ForAll @Size(max = 40) byte[] data, @ForAll @IntRange(max = 6) int strings) {
        RequestChecks checks = RequestChecks.forModel(
                ModelSettings.builder("m", 1)
                        .input(TensorSpec.of("a", DataType.BYTES, Shape.of(-1)))
                        .build(),
                Map.of());
        InputTensor input = InferRequests.input("a", "BYTES", MemorySegment.ofArray(data), strings);

        try {
            assertThat(checks.check(InferRequests.request(input), 0)
                            .inputs()
                            .getFirst()
                            .tensor()
                            .byteSize())
                    .isEqualTo(data.length);
        } catch (InferenceException e) {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        }
    }
}
