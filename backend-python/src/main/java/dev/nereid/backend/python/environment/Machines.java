package dev.nereid.backend.python.environment;

import java.util.Optional;

/** Machines on which processes of the backend run. Static functions only. */
public final class Machines {
    private Machines() {}

    /**
     * Returns why processes of the backend do not run on this machine: the system, and which ones are expected; empty
     * if they run. Reads the header of the program of this process.
     */
    public static Optional<String> unsupported() {
        return unsupported(ElfHeader.of(ElfHeader.THIS_PROCESS));
    }

    static Optional<String> unsupported(Optional<ElfHeader> program) {
        if (program.isEmpty()) {
            return Optional.of("this system is not Linux (expected: Linux on x86-64 or aarch64)");
        }
        return program.filter(header -> !header.isSupported())
                .map(header -> "Linux on " + header.machineName() + " (expected: Linux on x86-64 or aarch64)");
    }
}
