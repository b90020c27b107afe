package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.Exchange;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** Measures start-up time and idle memory on the bundled repository. */
final class StartSection {
    private static final String LIBRARIES = "lib";
    private static final String SCRIPTS = "bin";
    private static final String CACHE = "nereid.aot";

    private static final int STARTS = 5;
    private static final Duration IDLE = Duration.ofSeconds(5);
    private static final double BYTES_PER_MB = 1e6;
    private static final double MAX_MB = 200;

    /** A request for a classifier of the bundled repository. It has one blank image of 8 x 8 pixels. */
    private static final byte[] REQUEST = Exchange.post(
            "/v2/models/digits/infer",
            "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":[1,1,8,8],\"data\":["
                    + Collections.nCopies(64, "0").stream().collect(Collectors.joining(",")) + "]}]}");

    private StartSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = new Table(
                "Start: bundled repository, " + STARTS + " starts", "WHAT", "MEDIAN", "HIGHEST", "TARGET", "");
        Path home = bench.installed();
        Path repository = home.resolve("examples/models");
        if (Files.exists(home.resolve(LIBRARIES).resolve(CACHE))) {
            measure(bench, "with AOT cache", 1, new Launch(home, repository, List.of()), table);
        } else {
            table.addFootnote("left out: the start with an AOT cache, since nereid-aot made none");
        }
        measure(
                bench,
                "without AOT cache",
                2,
                new Launch(withoutCache(bench, "without-cache"), repository, List.of()),
                table);
        return table;
    }

    /**
     * Creates a second installation of the same files without the AOT cache. Its start includes the launcher's behavior
     * without a cache.
     */
    static Path withoutCache(BenchmarkRun bench, String name) throws IOException {
        Path home = bench.workspace().path(name);
        Path libraries = Files.createDirectories(home.resolve(LIBRARIES));
        for (Path file : content(bench.installed())) {
            if (!file.endsWith(LIBRARIES) && !file.endsWith(SCRIPTS)) {
                Files.createSymbolicLink(home.resolve(file.getFileName()), file);
            }
        }
        for (Path file : content(bench.installed().resolve(LIBRARIES))) {
            if (!file.endsWith(CACHE)) {
                Files.createSymbolicLink(libraries.resolve(file.getFileName()), file);
            }
        }
        // Copies, since the launcher follows links to find out where it is installed.
        Path scripts = Files.createDirectories(home.resolve(SCRIPTS));
        for (Path file : content(bench.installed().resolve(SCRIPTS))) {
            Files.copy(file, scripts.resolve(file.getFileName()), StandardCopyOption.COPY_ATTRIBUTES);
        }
        return home;
    }

    private static List<Path> content(Path directory) throws IOException {
        try (Stream<Path> content = Files.list(directory)) {
            return content.toList();
        }
    }

    private static void measure(BenchmarkRun bench, String how, double maxSeconds, Launch launch, Table table)
            throws IOException, InterruptedException {
        bench.progress().accept("start " + how);
        List<Double> seconds = new ArrayList<>();
        List<Double> megabytes = new ArrayList<>();
        // Not counted: it loads the files into the page cache.
        startOnce(bench, launch, new ArrayList<>(), new ArrayList<>());
        for (int i = 0; i < STARTS; i++) {
            startOnce(bench, launch, seconds, megabytes);
        }
        table.add(row("exec to first response, " + how, "%.2f s", seconds, maxSeconds));
        table.add(row("resident memory idle, " + how, "%.0f MB", megabytes, MAX_MB));
    }

    private static void startOnce(BenchmarkRun bench, Launch launch, List<Double> seconds, List<Double> megabytes)
            throws IOException, InterruptedException {
        try (NereidProcess server = NereidProcess.launch(bench, launch)) {
            Duration start = server.awaitOk(REQUEST);
            server.idle(IDLE);
            seconds.add((double) start.toNanos() / TimeUnit.SECONDS.toNanos(1));
            megabytes.add(server.residentBytes() / BYTES_PER_MB);
        }
    }

    private static String[] row(String row, String format, List<Double> numbers, double max) {
        double median = Figures.median(numbers);
        return new String[] {
            row,
            String.format(Locale.ROOT, format, median),
            String.format(Locale.ROOT, format, Collections.max(numbers)),
            "<= " + String.format(Locale.ROOT, format, max),
            Figures.verdict(median <= max)
        };
    }
}
