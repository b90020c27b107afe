package dev.nereid.benchmarks;

import java.io.IOException;
import java.nio.file.Path;
import java.util.function.Consumer;

/**
 * What every section of a run works with. Immutable.
 *
 * @param options what was asked for
 * @param checkout the folder that holds the sources and what was built
 * @param classPath the class path of the ceilings
 * @param workspace where files go
 * @param children who starts and ends processes
 * @param progress told what is going on
 */
record Bench(
        Options options,
        Path checkout,
        String classPath,
        Workspace workspace,
        Children children,
        Consumer<String> progress) {
    /** Returns the folder of the installed server. */
    Path installed() {
        return checkout.resolve("distribution/target/nereid");
    }

    /** Runs a contest, and says so. */
    void run(Contest contest, Table table) throws IOException, InterruptedException {
        progress.accept(contest.subject().name());
        contest.run(options.pace(), table);
    }
}
