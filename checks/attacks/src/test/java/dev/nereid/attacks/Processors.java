package dev.nereid.attacks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.stream.LongStream;

/**
 * Utilization of the machine's processors, by this server and in total. Immutable.
 *
 * @param all ticks of all processors, idle ones too
 * @param busy ticks in which they were busy
 * @param ours ticks of the server and of its clients
 */
record Processors(long all, long busy, long ours) {
    private static final int IDLE = 3;
    private static final int WAITING = 4;
    private static final int COUNTED = 8;
    private static final int USER_TIME = 11;
    private static final int SYSTEM_TIME = 12;

    /** Limit in seconds that applies regardless of other load. */
    private static final double MAX_FACTOR = 5;

    /** Measures until now; zeros where the system does not report it. */
    static Processors now(long server) {
        try {
            long[] ticks = Arrays.stream(
                            Files.readAllLines(Path.of("/proc/stat")).getFirst().split(" +"))
                    .skip(1)
                    .limit(COUNTED)
                    .mapToLong(Long::parseLong)
                    .toArray();
            long all = LongStream.of(ticks).sum();
            return new Processors(
                    all,
                    all - ticks[IDLE] - ticks[WAITING],
                    ticksOf(server) + ticksOf(ProcessHandle.current().pid()));
        } catch (IOException e) {
            return new Processors(0, 0, 0);
        }
    }

    private static long ticksOf(long process) throws IOException {
        Path file = Path.of("/proc", Long.toString(process), "stat");
        if (!Files.exists(file)) {
            return 0;
        }
        String stat = Files.readString(file);
        String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ", -1);
        return Long.parseLong(fields[USER_TIME]) + Long.parseLong(fields[SYSTEM_TIME]);
    }

    /** Returns which share of the machine other processes had since another measurement. */
    double othersSince(Processors before) {
        long passed = all - before.all;
        return passed <= 0 ? 0 : Math.max(0, (double) (busy - before.busy - (ours - before.ours)) / passed);
    }

    /** Returns the factor by which a server may be slower than without other load. */
    static double factor(double others) {
        return Math.min(MAX_FACTOR, 1 / Math.max(1 / MAX_FACTOR, 1 - others));
    }
}
