package dev.nereid.backend.python.execute;

import java.io.IOException;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Finds a Python with NumPy for tests: the system's own, else that of the path. */
final class Pythons {
    private static final Optional<String> FOUND = List.of("/usr/bin/python3", "python3").stream()
            .filter(Pythons::hasNumPy)
            .findFirst();
    private static final int LIMIT_SECONDS = 60;

    private Pythons() {}

    static boolean isAvailable() {
        return FOUND.isPresent();
    }

    /** Returns its path or name. */
    static String executable() {
        return FOUND.orElseThrow();
    }

    private static boolean hasNumPy(String executable) {
        try {
            Process process = new ProcessBuilder(executable, "-c", "import numpy")
                    .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                    .redirectError(ProcessBuilder.Redirect.DISCARD)
                    .start();
            if (process.waitFor(LIMIT_SECONDS, TimeUnit.SECONDS)) {
                return process.exitValue() == 0;
            }
            process.destroyForcibly();
            return false;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return false;
        }
    }
}
