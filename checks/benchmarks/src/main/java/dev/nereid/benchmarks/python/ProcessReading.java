package dev.nereid.benchmarks.python;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;

/** Reads figures of a process from {@code /proc}. Static functions only. */
final class ProcessReading {
    private static final long BYTES_PER_KB = 1024;

    private ProcessReading() {}

    /** Returns how long all threads that the process has now have used processors, in nanoseconds. */
    static long processorNanos(long process) throws IOException {
        long nanos = 0;
        try (DirectoryStream<Path> threads = Files.newDirectoryStream(file(process, "task"))) {
            for (Path thread : threads) {
                nanos += Long.parseLong(
                        Files.readString(thread.resolve("schedstat")).split(" ", -1)[0]);
            }
        } catch (NoSuchFileException ended) {
            throw new IOException("process " + process + ": a thread has ended meanwhile", ended);
        }
        return nanos;
    }

    /** Returns the resident memory in bytes, with all that is shared. */
    static long residentBytes(long process) throws IOException {
        return BYTES_PER_KB * field(process, "smaps_rollup", "Rss:");
    }

    /** Returns the resident memory in bytes; of what several processes share, each has its part. */
    static long proportionalBytes(long process) throws IOException {
        return BYTES_PER_KB * field(process, "smaps_rollup", "Pss:");
    }

    private static long field(long process, String file, String field) throws IOException {
        for (String line : Files.readAllLines(file(process, file))) {
            if (line.startsWith(field)) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        throw new IOException("process " + process + ": " + field + " cannot be read");
    }

    private static Path file(long process, String name) {
        return Path.of("/proc", "" + process, name);
    }
}
