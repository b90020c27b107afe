package dev.nereid.backend.tensorflow.capi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** Checks the processor for what TensorFlow is compiled for. Stateless. */
public final class Processor {
    private static final Path CPU_INFO = Path.of("/proc/cpuinfo");

    private Processor() {}

    /** Returns why TensorFlow cannot run on this machine; empty if it can. Loads nothing. */
    public static Optional<String> obstacle() {
        try {
            return obstacle(NativePlatform.current(), CPU_INFO);
        } catch (UnsupportedOperationException e) {
            return Optional.of(String.valueOf(e.getMessage()));
        }
    }

    /** Returns why TensorFlow cannot run on a platform with the processor that {@code cpuInfo} describes. */
    static Optional<String> obstacle(NativePlatform platform, Path cpuInfo) {
        if (!platform.needsAvx() || !Files.isReadable(cpuInfo)) {
            return Optional.empty();
        }
        try (Stream<String> lines = Files.lines(cpuInfo)) {
            Optional<String> flags =
                    lines.filter(line -> line.startsWith("flags")).findFirst();
            boolean hasAvx =
                    flags.isEmpty() || List.of(flags.get().split("\\s+", -1)).contains("avx");
            return hasAvx
                    ? Optional.empty()
                    : Optional.of("processor: without AVX (expected: AVX, which TensorFlow is compiled for)");
        } catch (IOException e) {
            return Optional.empty(); // not known: it may work
        }
    }
}
