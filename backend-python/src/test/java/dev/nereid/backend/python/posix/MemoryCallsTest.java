package dev.nereid.backend.python.posix;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.condition.EnabledOnOs;
import org.junit.jupiter.api.condition.OS;

@EnabledOnOs(OS.LINUX)
class MemoryCallsTest {
    @Test
    void mapsOneFileTwice() throws PosixException {
        int descriptor = MemoryCalls.create("nereid-test");
        MemoryCalls.resize(descriptor, 8192);
        MemorySegment first = MemoryCalls.map(descriptor, 8192);
        MemorySegment second = MemoryCalls.map(descriptor, 8192);
        MemoryCalls.close(descriptor);

        first.set(ValueLayout.JAVA_BYTE, 8191, (byte) 7);

        assertThat(first.byteSize()).isEqualTo(8192);
        assertThat(second.get(ValueLayout.JAVA_BYTE, 8191)).isEqualTo((byte) 7);
        MemoryCalls.unmap(first);
        assertThat(second.get(ValueLayout.JAVA_BYTE, 8191)).isEqualTo((byte) 7);
        MemoryCalls.unmap(second);
    }

    @Test
    void fixesTheSizeOfSealedFiles() throws PosixException {
        int descriptor = MemoryCalls.create("nereid-test");
        MemoryCalls.resize(descriptor, 8192);
        MemoryCalls.seal(descriptor);

        assertThatThrownBy(() -> MemoryCalls.resize(descriptor, 4096))
                .isInstanceOf(PosixException.class)
                .hasMessageStartingWith("ftruncate: ")
                .hasMessageEndingWith("(errno 1)");
        assertThatThrownBy(() -> MemoryCalls.resize(descriptor, 16384)).isInstanceOf(PosixException.class);
        assertThatThrownBy(() -> MemoryCalls.seal(descriptor))
                .isInstanceOf(PosixException.class)
                .hasMessageStartingWith("fcntl: ");
        MemoryCalls.close(descriptor);
    }

    @Test
    void namesTheErrorOfTheSystem() {
        assertThatThrownBy(() -> MemoryCalls.close(-1))
                .isInstanceOf(PosixException.class)
                .hasMessage("close: Bad file descriptor (errno 9)");
        assertThatThrownBy(() -> MemoryCalls.map(-1, 4096))
                .isInstanceOfSatisfying(
                        PosixException.class, e -> assertThat(e.errno()).isEqualTo(9));
        assertThatThrownBy(() -> MemoryCalls.resize(-1, 4096)).isInstanceOf(PosixException.class);
        assertThatThrownBy(() -> MemoryCalls.create("n".repeat(300)))
                .isInstanceOf(PosixException.class)
                .hasMessageStartingWith("memfd_create: Invalid argument");
    }
}
