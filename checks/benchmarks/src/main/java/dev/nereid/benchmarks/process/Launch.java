package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.run.BenchmarkRun;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Launch options of a server. Immutable.
 *
 * @param home the directory of the installed server
 * @param flags its flags, but those for repository and ports
 */
public record Launch(Path home, Path repository, List<String> flags) {
    /** The example backend that most sections measure. An installation has other examples, without it. */
    private static final String MEASURED_BACKEND = "identity.jar";

    public Launch {
        flags = List.copyOf(flags);
    }

    /** Serves a repository with the example backends. It has the ceilings' number of event loops, and more flags. */
    public static Launch withExamples(BenchmarkRun bench, Path repository, String... more) {
        return withExamples(bench, bench.installed(), repository, more);
    }

    /**
     * Serves a repository with a server that is installed elsewhere. Its own example backends are used if they exist;
     * the rest is the same.
     */
    public static Launch withExamples(BenchmarkRun bench, Path home, Path repository, String... more) {
        Path plugins = Stream.of(home.resolve("examples/plugins"), home.resolve("../../../examples/plugins"))
                .filter(directory -> Files.isRegularFile(directory.resolve(MEASURED_BACKEND)))
                .findFirst()
                .orElse(bench.checkout().resolve("examples/plugins"));
        List<String> flags = new ArrayList<>(List.of(
                "--backend-directory=" + plugins.normalize(),
                "--http-thread-count=" + bench.options().eventLoops()));
        flags.addAll(List.of(more));
        return new Launch(home, repository, flags);
    }
}
