package dev.nereid.benchmarks;

import java.nio.file.Path;
import java.util.List;

/**
 * How a server is started. Immutable.
 *
 * @param home the folder of the installed server
 * @param repository what it serves
 * @param flags its flags, but those for repository and ports
 */
record Launch(Path home, Path repository, List<String> flags) {
    Launch {
        flags = List.copyOf(flags);
    }

    /** Serves a repository with the example backends, and as many event loops as the ceilings have. */
    static Launch withExamples(Bench bench, Path repository) {
        return new Launch(
                bench.installed(),
                repository,
                List.of(
                        "--backend-directory=" + bench.checkout().resolve("examples/plugins"),
                        "--http-thread-count=" + bench.options().eventLoops()));
    }
}
