package dev.nereid.server.memory;

import static dev.nereid.server.memory.ReportedMemory.MIN_AGE_NANOS;
import static dev.nereid.server.memory.ReportedMemory.SLOW_NANOS;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.MemoryUsage;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

final class ReportedMemoryTest {
    private static final long LOADED = Long.parseLong("9223372036854775802"); // times overflow

    private final ReportedMemory memory = new ReportedMemory(report(1), LOADED);

    private static List<MemoryUsage> report(long... bytes) {
        return Arrays.stream(bytes)
                .mapToObj(one -> new MemoryUsage(MemoryPlace.HOST, one))
                .toList();
    }

    @Test
    void isRefreshedOnceASecond() {
        assertThat(memory.begin(LOADED + MIN_AGE_NANOS - 1)).isFalse();
        assertThat(memory.begin(LOADED + MIN_AGE_NANOS)).isTrue();
        memory.end();
        assertThat(memory.begin(LOADED + 2 * MIN_AGE_NANOS - 1)).isFalse();
        assertThat(memory.begin(LOADED + 2 * MIN_AGE_NANOS)).isTrue();
    }

    @Test
    void isRefreshedByOneAtATime() {
        long now = LOADED + MIN_AGE_NANOS;
        assertThat(memory.begin(now)).isTrue();
        assertThat(memory.begin(now + 5 * MIN_AGE_NANOS)).isFalse();

        memory.calling(now + 6 * MIN_AGE_NANOS);

        assertThat(memory.isCalling()).isTrue();
        assertThat(memory.begin(now + 8 * MIN_AGE_NANOS)).isFalse();
        memory.end();
        assertThat(memory.isCalling()).isFalse();
        assertThat(memory.begin(now + 8 * MIN_AGE_NANOS)).isTrue();
    }

    @Test
    void isSlowWhenTheBackendHasNotAnswered() {
        long now = LOADED + MIN_AGE_NANOS;
        assertThat(memory.begin(now)).isTrue();
        assertThat(memory.isSlow(now + SLOW_NANOS)).as("no thread is free").isFalse();

        memory.calling(now);

        assertThat(memory.isSlow(now + SLOW_NANOS - 1)).isFalse();
        assertThat(memory.isSlow(now + SLOW_NANOS)).isTrue();
        assertThat(memory.claimLog()).isTrue();
        assertThat(memory.claimLog()).isFalse();
    }

    @Test
    void addsThePlacesWithoutOverflow() {
        memory.update(report(2, 3));
        assertThat(memory.byteSize()).isEqualTo(5);
        assertThat(memory.latest()).hasSize(2);

        memory.update(report(Long.MAX_VALUE, Long.MAX_VALUE));
        assertThat(memory.byteSize()).isEqualTo(ReportedMemory.MAX_BYTES);

        memory.update(List.of());
        assertThat(memory.byteSize()).isZero();
    }
}
