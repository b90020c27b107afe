package dev.nereid.benchmarks.python;

import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/**
 * A Python that has NumPy. Immutable.
 *
 * @param executable the program itself, no script that starts it
 * @param versions which Python and NumPy it is
 */
record Interpreter(Path executable, String versions) {
    /** That of the system first: others are often slower to start, and differ from machine to machine. */
    private static final List<String> CANDIDATES = List.of("/usr/bin/python3", "python3");

    private static final String QUESTION = "import sys, numpy; print(sys.executable);"
            + " print('Python %d.%d.%d, NumPy %s' % (*sys.version_info[:3], numpy.__version__))";

    /** Finds one. Blocks. */
    static Optional<Interpreter> find(BenchmarkRun bench) throws InterruptedException {
        for (String candidate : CANDIDATES) {
            Optional<Interpreter> found = ask(bench, candidate);
            if (found.isPresent()) {
                return found;
            }
        }
        return Optional.empty();
    }

    private static Optional<Interpreter> ask(BenchmarkRun bench, String candidate) throws InterruptedException {
        try {
            Process process = bench.children()
                    .start(new ProcessBuilder(candidate, "-c", QUESTION)
                            .redirectError(ProcessBuilder.Redirect.DISCARD));
            List<String> lines = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8)
                    .lines()
                    .toList();
            return process.waitFor() == 0 && lines.size() == 2
                    ? Optional.of(new Interpreter(Path.of(lines.getFirst()), lines.getLast()))
                    : Optional.empty();
        } catch (IOException notInstalled) {
            return Optional.empty();
        }
    }
}
