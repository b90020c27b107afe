package dev.nereid.backend.python.environment;

import dev.nereid.spi.Parameters;
import java.util.OptionalLong;

/**
 * Limits of the kernel for a process. Immutable.
 *
 * @param memory the largest address space in bytes; empty for no limit
 * @param processorSeconds the largest processor time in seconds; empty for no limit
 * @param openFiles the largest number of open descriptors; empty for no limit
 */
public record ProcessLimits(OptionalLong memory, OptionalLong processorSeconds, OptionalLong openFiles) {
    public static final ProcessLimits NONE =
            new ProcessLimits(OptionalLong.empty(), OptionalLong.empty(), OptionalLong.empty());

    /** The least limit of open files: what the process itself and an import need. */
    private static final int MIN_OPEN_FILES = 64;

    /** Reads limits, of which each that is missing comes from others. */
    static ProcessLimits read(Parameters from, String memory, String seconds, String files, ProcessLimits others) {
        OptionalLong bytes = from.byteSize(memory);
        if (bytes.isPresent() && bytes.getAsLong() == 0) {
            throw from.invalid(memory, "1 or more bytes, or a number with K, M, G or T");
        }
        return new ProcessLimits(
                first(bytes, others.memory()),
                first(from.longInteger(seconds, 1, Integer.MAX_VALUE), others.processorSeconds()),
                first(from.longInteger(files, MIN_OPEN_FILES, Integer.MAX_VALUE), others.openFiles()));
    }

    private static OptionalLong first(OptionalLong value, OptionalLong other) {
        return value.isPresent() ? value : other;
    }
}
