package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * Context of a benchmark run: options, workspace, processes and progress. Immutable.
 *
 * @param options what was asked for
 * @param checkout the folder that holds the sources and what was built
 * @param classPath the class path of the ceilings
 * @param workspace where files go
 * @param children who starts and ends processes
 * @param progress told what is going on
 */
public record BenchmarkRun(
        Options options,
        Path checkout,
        String classPath,
        Workspace workspace,
        ChildProcesses children,
        Consumer<String> progress) {
    /** Returns the folder of the installed server. */
    public Path installed() {
        return checkout.resolve("distribution/target/nereid");
    }

    /** Runs a contest, and says so. */
    public void run(CeilingComparison contest, Table table) throws IOException, InterruptedException {
        progress.accept(contest.subject().name());
        contest.run(options.pace(), table);
    }
}
