package dev.nereid.distribution.process;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class MountTableTest {
    private static final MountTable TABLE = MountTable.of(List.of(
            "22 1 0:20 / / rw,relatime shared:1 - overlay overlay rw",
            "23 22 0:21 / /tmp rw,nosuid,nodev,noexec,relatime shared:2 - tmpfs tmpfs rw",
            "24 23 0:22 / /tmp/libraries rw,nosuid - tmpfs tmpfs rw",
            "25 22 0:23 / /srv rw,noexec - ext4 /dev/a rw",
            "26 22 0:24 / /srv rw - ext4 /dev/b rw",
            "27 22 0:25 / /mnt/a\\040b\\134c rw,noexec - ext4 /dev/c rw",
            "a line of another kernel"));

    @ParameterizedTest
    @CsvSource({
        "/, false",
        "/opt/nereid/plugins/.cache, false",
        "/tmp, true",
        "/tmp/nereid-0/not/there, true",
        "/tmp/../opt, false",
        "/tmp/libraries/x, false",
        "/tmpfs, false",
        "/srv/cache, false",
        "/mnt/a b\\c/d, true",
    })
    void knowsWhereCodeCannotBeMapped(Path directory, boolean noexec) {
        assertThat(TABLE.isNoexec(directory)).isEqualTo(noexec);
    }

    @Test
    void readsThatOfTheProcess() {
        assertThat(MountTable.ofThisProcess().isNoexec(Path.of("/proc"))).isIn(true, false);
        assertThat(MountTable.of(List.of()).isNoexec(Path.of("/tmp"))).isFalse();
    }
}
