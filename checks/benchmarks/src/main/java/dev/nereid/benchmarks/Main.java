package dev.nereid.benchmarks;

import dev.nereid.benchmarks.gpu.GpuCheck;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.EchoMain;
import dev.nereid.benchmarks.report.Machine;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.ChildProcesses;
import dev.nereid.benchmarks.run.Options;
import dev.nereid.benchmarks.run.Report;
import dev.nereid.benchmarks.run.Section;
import dev.nereid.benchmarks.run.Workspace;
import dev.nereid.benchmarks.section.BuildComparisonSection;
import dev.nereid.benchmarks.section.SectionRunner;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Entry point of a benchmark run. Besides {@link EchoMain} and {@link GpuCheck}, the only place that touches standard streams, system
 * properties and the exit status.
 */
public final class Main {
    private static final int FAILURE = 1;
    private static final int USAGE = 2;

    private Main() {}

    /** Runs benchmarks in the directory of the checkout, with the flags of {@code checks/benchmarks/run}. */
    public static void main(String[] args) throws IOException, InterruptedException {
        System.exit(run(Path.of(args[0]), Arrays.asList(args).subList(1, args.length)));
    }

    private static int run(Path checkout, List<String> arguments) throws IOException, InterruptedException {
        Options options;
        try {
            options = Options.parse(arguments, Runtime.getRuntime().availableProcessors());
        } catch (IllegalArgumentException e) {
            System.err.println("checks/benchmarks/run: " + e.getMessage());
            return USAGE;
        }
        if (options.help()) {
            System.out.print(Options.USAGE);
            return 0;
        }
        try (Workspace workspace = Workspace.create();
                ChildProcesses children = new ChildProcesses()) {
            atInterrupt(children, workspace);
            return run(new BenchmarkRun(
                    options,
                    checkout,
                    System.getProperty("java.class.path"),
                    workspace,
                    children,
                    name -> System.err.println("  measuring " + name + " ...")));
        }
    }

    /** Cleans up when the run is interrupted; does nothing after its normal end. */
    private static void atInterrupt(ChildProcesses children, Workspace workspace) {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            children.close();
            workspace.close();
        }));
    }

    private static int run(BenchmarkRun bench) throws IOException, InterruptedException {
        Options options = bench.options();
        try {
            if (options.sections().stream().anyMatch(Section::needsWrk)) {
                Wrk.require(bench.children());
            }
        } catch (IOException e) {
            System.err.println("checks/benchmarks/run: " + e.getMessage());
            return FAILURE;
        }
        Machine machine = Machine.here();
        Report.circumstances(machine, options).forEach(System.out::println);
        List<Table> tables = new ArrayList<>();
        int status = 0;
        if (options.compared().isPresent()) {
            return compare(bench, options.compared().get());
        }
        for (Section section : Section.values()) {
            if (!options.sections().contains(section) || bench.children().isClosed()) {
                continue;
            }
            try {
                Table table = SectionRunner.measure(section, bench);
                tables.add(table);
                System.out.println("\n" + table.text().stripTrailing());
            } catch (IOException e) {
                System.err.println("checks/benchmarks/run: " + section.flag() + ": " + e.getMessage());
                status = FAILURE;
            }
        }
        if (options.save()) {
            save(bench, new Report(LocalDate.now(ZoneOffset.UTC), machine, options, tables));
        }
        return status;
    }

    private static int compare(BenchmarkRun bench, Path old) throws InterruptedException {
        try {
            System.out.println(
                    "\n" + BuildComparisonSection.measure(bench, old).text().stripTrailing());
            return 0;
        } catch (IOException e) {
            System.err.println("checks/benchmarks/run: --compare: " + e.getMessage());
            return FAILURE;
        }
    }

    private static void save(BenchmarkRun bench, Report report) throws IOException {
        Path directory = Files.createDirectories(bench.checkout().resolve("checks/benchmarks/results"));
        Files.writeString(directory.resolve(report.fileName()), report.markdown());
        System.out.println("\nsaved: checks/benchmarks/results/" + report.fileName());
    }
}
