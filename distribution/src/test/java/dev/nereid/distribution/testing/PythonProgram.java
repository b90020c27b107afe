package dev.nereid.distribution.testing;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.List;
import java.util.Optional;

/** Finds the Python that tests of Python models use. Static functions only. */
public final class PythonProgram {
    /** The system's first: others on the path may hide it. */
    private static final List<String> PROGRAMS = List.of("/usr/bin/python3", "python3");

    private PythonProgram() {}

    /**
     * Returns a Python with NumPy. Skips the test if there is none; in continuous integration, which installs it, the test
     * fails.
     */
    public static String withNumPy() {
        Optional<String> program = withModule("numpy");
        if (System.getenv("CI") == null) {
            assumeTrue(program.isPresent(), "not installed: Python with NumPy");
        }
        assertThat(program).as("a Python with NumPy").isPresent();
        return program.orElseThrow();
    }

    /** Returns a Python that can import a module; empty if there is none. */
    public static Optional<String> withModule(String module) {
        return PROGRAMS.stream()
                .filter(python -> runs(python, "import " + module))
                .findFirst();
    }

    /** Returns whether a Python executes a statement without an error. */
    public static boolean runs(String python, String statement) {
        try {
            Process process = new ProcessBuilder(python, "-c", statement)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            return process.waitFor() == 0;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
