package dev.nereid.benchmarks;

import java.nio.file.Path;
import java.util.ArrayList;
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

    /** Serves a repository with the example backends, as many event loops as the ceilings have, and more flags. */
    static Launch withExamples(Bench bench, Path repository, String... more) {
        List<String> flags = new ArrayList<>(List.of(
                "--backend-directory=" + bench.checkout().resolve("examples/plugins"),
                "--http-thread-count=" + bench.options().eventLoops()));
        flags.addAll(List.of(more));
        return new Launch(bench.installed(), repository, flags);
    }
}
