package dev.nereid.distribution.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * The resources that a server process uses at one moment, as Linux and its JVM report them. Immutable.
 *
 * @param heap the reachable heap, in bytes
 * @param loaders the number of class loaders
 * @param classes the number of classes; without hidden ones, which the JVM makes for lambdas and method handles
 * @param resident the resident memory, in bytes
 * @param threads the number of threads
 * @param descriptors the number of open files, sockets and pipes
 * @param files the number of different mapped files
 */
public record ProcessUse(
        long heap, long loaders, long classes, long resident, long threads, long descriptors, long files) {
    /** Why a test is skipped where the figures cannot be read. */
    public static final String NOT_SUPPORTED = "needs /proc/self/smaps_rollup, of Linux";

    private static final int JCMD_SECONDS = 60;
    private static final int SETTLING_SECONDS = 60;
    private static final long LEVEL = 2L << 20;
    private static final long LEVEL_NANOS = TimeUnit.SECONDS.toNanos(3);
    private static final String HEAP = "jvm_memory_used_bytes{area=\"heap\"} ";
    private static final Pattern TOTAL = Pattern.compile("Total = (\\d+) +(\\d+) ");
    private static final Pattern HIDDEN = Pattern.compile(" (\\d+) +\\d+ +\\d+ +\\+ hidden classes");

    /** Returns whether the figures of a process can be read here. */
    public static boolean isSupported() {
        return Files.exists(Path.of("/proc/self/smaps_rollup"));
    }

    /** Waits until nothing is loading, collects the server's garbage, and measures. */
    public static ProcessUse of(InstalledServer server) throws IOException, InterruptedException {
        settledResidentBytes(server);
        collect(server);
        String loaders = jcmd(server, "VM.classloader_stats");
        Matcher total = TOTAL.matcher(loaders);
        if (!total.find()) {
            throw new AssertionError("no total in: " + loaders);
        }
        long hidden = HIDDEN.matcher(loaders)
                .results()
                .mapToLong(line -> Long.parseLong(line.group(1)))
                .sum();
        Path process = Path.of("/proc", Long.toString(server.pid()));
        return new ProcessUse(
                heap(server.metrics("GET", "/metrics").body()),
                Long.parseLong(total.group(1)),
                Long.parseLong(total.group(2)) - hidden,
                residentBytes(server),
                entries(process.resolve("task")),
                entries(process.resolve("fd")),
                mappedFiles(process));
    }

    private static void collect(InstalledServer server) throws IOException, InterruptedException {
        jcmd(server, "GC.run");
    }

    private static String jcmd(InstalledServer server, String... command) throws IOException, InterruptedException {
        List<String> line = new ArrayList<>();
        line.add(Path.of(System.getProperty("java.home"), "bin", "jcmd").toString());
        line.add(Long.toString(server.pid()));
        line.addAll(List.of(command));
        Process process = new ProcessBuilder(line).redirectErrorStream(true).start();
        String out = process.inputReader().readAllAsString();
        if (!process.waitFor(JCMD_SECONDS, TimeUnit.SECONDS) || process.exitValue() != 0) {
            process.destroyForcibly();
            throw new AssertionError(command[0] + ": " + out);
        }
        return out;
    }

    private static long residentBytes(InstalledServer server) {
        try (Stream<String> lines = Files.lines(Path.of("/proc", Long.toString(server.pid()), "smaps_rollup"))) {
            return lines.filter(line -> line.startsWith("Rss:"))
                            .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                            .sum()
                    << 10;
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * Waits until what a load or an unload leaves behind is gone, and returns the resident memory. Threads of loads end
     * when they are idle, and the server returns freed memory once in a while.
     */
    public static long settledResidentBytes(InstalledServer server) {
        AtomicLong level = new AtomicLong();
        AtomicLong since = new AtomicLong();
        Eventually.holds("resident memory is level", SETTLING_SECONDS, () -> {
            long now = residentBytes(server);
            if (Math.abs(now - level.get()) > LEVEL) {
                level.set(now);
                since.set(System.nanoTime());
            }
            if (System.nanoTime() - since.get() <= LEVEL_NANOS) {
                return false;
            }
            since.set(System.nanoTime());
            return !isLoading(server);
        });
        return residentBytes(server);
    }

    /** Returns whether threads of loads are left. Native threads have the name of the one that started them. */
    private static boolean isLoading(InstalledServer server) {
        try {
            return jcmd(server, "Thread.print").contains("\n\"load/");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError(e);
        }
    }

    private static long heap(String metrics) {
        return metrics.lines()
                .filter(line -> line.startsWith(HEAP))
                .mapToLong(line -> (long) Double.parseDouble(line.substring(HEAP.length())))
                .findFirst()
                .orElseThrow(() -> new AssertionError("no " + HEAP + " in: " + metrics));
    }

    private static long entries(Path directory) throws IOException {
        try (Stream<Path> all = Files.list(directory)) {
            return all.count();
        }
    }

    private static long mappedFiles(Path process) throws IOException {
        List<String> lines = Files.readAllLines(process.resolve("maps"));
        return lines.stream()
                .filter(line -> line.indexOf('/') > 0)
                .map(line -> line.substring(line.indexOf('/')))
                .distinct()
                .count();
    }
}
