package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * Context of a benchmark run: options, workspace, processes and progress. Immutable.
 *
 * @param checkout the directory of the sources and build results
 * @param classPath the class path of the ceilings
 * @param workspace where files go
 * @param children starts and ends processes
 * @param progress receives progress messages
 */
public record BenchmarkRun(
        Options options,
        Path checkout,
        String classPath,
        Workspace workspace,
        ChildProcesses children,
        Consumer<String> progress) {
    public Path installed() {
        return checkout.resolve("distribution/target/nereid");
    }

    /** Runs a comparison with one ceiling, adds the rows to a table, and reports progress. */
    public void run(SharedCeilingComparison contest, Pace pace, Table table) throws IOException, InterruptedException {
        progress.accept(contest.subjects().getFirst().contender().name());
        contest.run(pace, table);
    }

    public void run(CeilingComparison contest, Table table) throws IOException, InterruptedException {
        progress.accept(contest.subject().name());
        contest.run(options.pace(), table);
    }
}
