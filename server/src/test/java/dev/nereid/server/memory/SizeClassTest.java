package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class SizeClassTest {
    @ParameterizedTest
    @CsvSource({
        "0, 64",
        "1, 64",
        "64, 64",
        "65, 128",
        "128, 128",
        "129, 192",
        "256, 256",
        "257, 320",
        "320, 320",
        "321, 384",
        "512, 512",
        "513, 640",
        "1024, 1024",
        "614400, 655360",
        "67108864, 67108864"
    })
    void roundsUpToTheSmallestClassThatFits(long asked, long given) {
        assertThat(SizeClass.sizeOf(SizeClass.indexOf(asked))).isEqualTo(given);
    }

    @Test
    void growsByAtMostAQuarterAndStaysAligned() {
        for (int index = 4; index <= SizeClass.indexOf(TensorPool.MAX_POOLED); index++) {
            long smaller = SizeClass.sizeOf(index - 1);
            long size = SizeClass.sizeOf(index);
            assertThat(size).isGreaterThan(smaller).isLessThanOrEqualTo(smaller + smaller / 4);
            assertThat(size % SizeClass.ALIGNMENT).isZero();
            assertThat(SizeClass.indexOf(size)).isEqualTo(index);
            assertThat(SizeClass.indexOf(smaller + 1)).isEqualTo(index);
        }
    }
}
