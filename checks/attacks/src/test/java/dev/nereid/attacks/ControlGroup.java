package dev.nereid.attacks;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * A Linux control group with a memory limit. It ends the processes in it that need more memory. Removed by its close,
 * when its processes have ended. Immutable.
 */
final class ControlGroup implements AutoCloseable {
    private static final Path MOUNT = Path.of("/sys/fs/cgroup");

    private final Path directory;

    private ControlGroup(Path directory) {
        this.directory = directory;
    }

    /** Creates a control group, if this user may. */
    static Optional<ControlGroup> make(long maxBytes) {
        String name = "nereid-attacks-" + ProcessHandle.current().pid() + "-" + System.nanoTime();
        for (Path parent : parents()) {
            Path directory = parent.resolve(name);
            try {
                Files.createDirectory(directory);
            } catch (IOException e) {
                continue;
            }
            try {
                limit(directory, maxBytes);
                return Optional.of(new ControlGroup(directory));
            } catch (IOException e) {
                remove(directory);
            }
        }
        return Optional.empty();
    }

    /** Returns the file that a process writes its number to, to enter the group. */
    Path entrance() {
        return directory.resolve("cgroup.procs");
    }

    @Override
    public void close() {
        remove(directory);
    }

    /** The group of this process may hold others (version 1); if not, the one around it may. */
    private static List<Path> parents() {
        List<Path> parents = new ArrayList<>();
        try {
            for (String line : Files.readAllLines(Path.of("/proc/self/cgroup"))) {
                String[] parts = line.split(":", 3);
                Path root = parts[1].isEmpty() ? MOUNT : MOUNT.resolve("memory");
                if (parts[1].isEmpty() || parts[1].equals("memory")) {
                    Path own = root.resolve(parts[2].substring(1));
                    parents.addAll(List.of(own, own.resolveSibling("."), root));
                }
            }
        } catch (IOException e) {
            return List.of(); // not Linux
        }
        return parents.stream().map(Path::normalize).filter(Files::isDirectory).toList();
    }

    private static void limit(Path directory, long maxBytes) throws IOException {
        Path second = directory.resolve("memory.max");
        if (Files.exists(second)) {
            Files.writeString(second, Long.toString(maxBytes));
            writeIfThere(directory.resolve("memory.swap.max"), "0");
        } else {
            Files.writeString(directory.resolve("memory.limit_in_bytes"), Long.toString(maxBytes));
            writeIfThere(directory.resolve("memory.swappiness"), "0");
        }
    }

    private static void writeIfThere(Path file, String text) throws IOException {
        if (Files.exists(file)) {
            Files.writeString(file, text);
        }
    }

    private static void remove(Path directory) {
        try {
            Files.deleteIfExists(directory);
        } catch (IOException e) {
            // an empty group that stays does no harm
        }
    }
}
