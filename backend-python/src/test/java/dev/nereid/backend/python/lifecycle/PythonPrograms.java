package dev.nereid.backend.python.lifecycle;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashSet;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/** Pythons of this machine. Static functions only. */
final class PythonPrograms {
    private static final Optional<Path> WITH_NUMPY = find();

    private PythonPrograms() {}

    /** Returns a Python with NumPy; empty if there is none. */
    static Optional<Path> withNumpy() {
        return WITH_NUMPY;
    }

    private static Optional<Path> find() {
        Set<Path> candidates = new LinkedHashSet<>();
        candidates.add(Path.of("/usr/bin/python3"));
        candidates.add(Path.of("/usr/local/bin/python3"));
        for (String directory : System.getenv().getOrDefault("PATH", "").split(":", -1)) {
            candidates.add(Path.of(directory, "python3"));
        }
        return candidates.stream()
                .filter(Files::isExecutable)
                .filter(python -> run(python, "-c", "import numpy"))
                .findFirst();
    }

    /** Runs a program, and returns whether it has succeeded. */
    static boolean run(Path program, String... arguments) {
        try {
            String[] command = new String[arguments.length + 1];
            command[0] = program.toString();
            System.arraycopy(arguments, 0, command, 1, arguments.length);
            Process process = new ProcessBuilder(command)
                    .redirectErrorStream(true)
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .start();
            if (!process.waitFor(120, TimeUnit.SECONDS)) {
                process.destroyForcibly();
                return false;
            }
            return process.exitValue() == 0;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
