package dev.nereid.benchmarks.python;

import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Python models without requests: what they cost beside the memory of their Pythons. */
final class IdleModels {
    private static final int MODELS = 100;
    private static final int QUICK_MODELS = 20;
    private static final Duration IDLE = Duration.ofSeconds(30);
    private static final Duration QUICK_IDLE = Duration.ofSeconds(5);

    /** Also until the threads that loaded end. */
    private static final Duration SETTLE = Duration.ofSeconds(15);

    private static final double BYTES_PER_MIB = 1 << 20;
    private static final double PERCENT = 100;
    private static final double MAX_IDLE_PERCENT = 1;

    /**
     * The figures of one server; memory in MiB, use of one processor in percent.
     *
     * @param startSeconds from its start until it was ready
     * @param pythons the mean resident memory of its Pythons
     * @param allPythons the memory of all its Pythons, with shared pages counted once
     * @param pythonsUse the use of processors of all its Pythons
     */
    private record Idle(
            double startSeconds,
            double memory,
            long threads,
            double use,
            double pythons,
            double allPythons,
            double pythonsUse) {}

    private IdleModels() {}

    /** Measures servers with one model and with many, and adds rows. */
    static void measure(BenchmarkRun bench, Interpreter python, Table table) throws IOException, InterruptedException {
        int count = bench.options().pace().isQuick() ? QUICK_MODELS : MODELS;
        double bare = bare(bench, python);
        Idle single = serve(bench, python, 1);
        Idle many = serve(bench, python, count);
        String models = count + " idle models: ";
        double more = count - 1;
        add(table, models + "exec to ready", "%.1f s", many.startSeconds());
        add(table, models + "memory of the server", "%.0f MiB", many.memory());
        add(table, "  each further model in the server", "%.2f MiB", (many.memory() - single.memory()) / more);
        add(
                table,
                "  threads of the server for each further model",
                "%.2f",
                (many.threads() - single.threads()) / more);
        add(table, models + "memory of each Python", "%.1f MiB", many.pythons());
        add(table, "  a bare Python with NumPy", "%.1f MiB", bare);
        add(table, models + "all Pythons, shared pages once", "%.0f MiB", many.allPythons());
        addUse(table, models + "the server's use of processors", many.use());
        addUse(table, models + "the Pythons' use of processors", many.pythonsUse());
    }

    private static Idle serve(BenchmarkRun bench, Interpreter python, int count)
            throws IOException, InterruptedException {
        bench.progress().accept(count + " idle Python models");
        Path repository = bench.workspace().path("models-python-" + count);
        for (int i = 0; i < count; i++) {
            PythonModels.identity(repository, "m" + i, "");
        }
        Launch launch = Launch.withExamples(bench, repository, PythonSection.backendSetting(python));
        try (NereidProcess server = NereidProcess.start(bench, launch, PythonSection.START_TIMEOUT)) {
            double start = seconds(server.age());
            boolean quick = bench.options().pace().isQuick();
            server.idle(quick ? QUICK_IDLE : SETTLE);
            return watch(server, start, count, quick ? QUICK_IDLE : IDLE);
        }
    }

    private static Idle watch(NereidProcess server, double start, int count, Duration time)
            throws IOException, InterruptedException {
        List<Long> pythons = server.children();
        if (pythons.size() != count) {
            throw new IOException("Pythons of the server: " + pythons.size() + " (expected: " + count + ")");
        }
        double before = seconds(server.processorTime());
        long pythonsBefore = processorNanos(pythons);
        server.idle(time);
        double used = seconds(server.processorTime()) - before;
        double usedByPythons = (processorNanos(pythons) - pythonsBefore) / 1e9;
        double resident = 0;
        double proportional = 0;
        for (long python : pythons) {
            resident += ProcessReading.residentBytes(python) / BYTES_PER_MIB;
            proportional += ProcessReading.proportionalBytes(python) / BYTES_PER_MIB;
        }
        return new Idle(
                start,
                server.residentBytes() / BYTES_PER_MIB,
                server.threads(),
                PERCENT * used / time.toSeconds(),
                resident / count,
                proportional,
                PERCENT * usedByPythons / time.toSeconds());
    }

    private static long processorNanos(List<Long> processes) throws IOException {
        long nanos = 0;
        for (long process : processes) {
            nanos += ProcessReading.processorNanos(process);
        }
        return nanos;
    }

    /** Returns the memory of a Python that has only imported NumPy, in MiB. */
    private static double bare(BenchmarkRun bench, Interpreter python) throws IOException {
        Process process = bench.children()
                .start(new ProcessBuilder(
                        python.executable().toString(),
                        "-c",
                        "import sys, numpy; print('ready', flush=True); sys.stdin.read()"));
        try {
            // Left open: the process writes nothing else, and ends with its input.
            BufferedReader reader =
                    new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.US_ASCII));
            if (reader.readLine() == null) {
                throw new IOException("Python: ended at its start");
            }
            return ProcessReading.residentBytes(process.pid()) / BYTES_PER_MIB;
        } finally {
            bench.children().end(process);
        }
    }

    private static double seconds(Duration time) {
        return (double) time.toNanos() / TimeUnit.SECONDS.toNanos(1);
    }

    private static void add(Table table, String what, String format, double figure) {
        table.add(what, "", "", "", String.format(Locale.ROOT, format, figure), "", "");
    }

    private static void addUse(Table table, String what, double percent) {
        table.add(
                what,
                "",
                "",
                "",
                String.format(Locale.ROOT, "%.2f %%", percent),
                String.format(Locale.ROOT, "<= %.0f %%", MAX_IDLE_PERCENT),
                Figures.verdict(percent <= MAX_IDLE_PERCENT));
    }
}
