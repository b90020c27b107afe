package dev.nereid.api;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.spi.DataType;
import java.math.BigInteger;
import java.util.Arrays;
import net.jqwik.api.Arbitraries;
import net.jqwik.api.Arbitrary;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.Provide;

/** Sizes of shapes are right or refused, never wrapped around. */
class InputTensorProperties {
    private static final BigInteger MOST = BigInteger.valueOf(Long.MAX_VALUE);

    @Provide
    Arbitrary<long[]> shapes() {
        Arbitrary<Long> nearPowers = Arbitraries.integers()
                .between(0, 62)
                .flatMap(bits -> Arbitraries.longs().between(-1, 1).map(off -> Math.max(0, (1L << bits) + off)));
        return Arbitraries.oneOf(
                        Arbitraries.longs().between(0, 9),
                        nearPowers,
                        Arbitraries.longs().greaterOrEqual(0))
                .array(long[].class)
                .ofMaxSize(6);
    }

    @Property
    void agreesWithUnlimitedArithmetic(@ForAll("shapes") long[] dims, @ForAll DataType type) {
        BigInteger largest =
                product(Arrays.stream(dims).map(dim -> Math.max(dim, 1)).toArray());
        BigInteger elements = product(dims);
        BigInteger bytes = elements.multiply(BigInteger.valueOf(type.byteSize()));

        if (largest.compareTo(MOST) > 0) {
            assertThatThrownBy(() -> InputTensor.elementCount("x", dims)).hasMessageStartingWith("invalid shape");
        } else {
            assertThat(InputTensor.elementCount("x", dims)).isEqualTo(elements.longValueExact());
            if (bytes.compareTo(MOST) > 0) {
                assertThatThrownBy(() -> InputTensor.byteSize("x", type, dims)).hasMessageStartingWith("byte size");
            } else {
                assertThat(InputTensor.byteSize("x", type, dims)).isEqualTo(bytes.longValueExact());
            }
        }
    }

    private static BigInteger product(long[] dims) {
        return Arrays.stream(dims).mapToObj(BigInteger::valueOf).reduce(BigInteger.ONE, BigInteger::multiply);
    }
}
