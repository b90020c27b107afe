package dev.nereid.backend.python.death;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Reads what the kernel says of processes. */
final class Processes {
    private Processes() {}

    /** Returns the processes of models that a process has as children. */
    static List<Long> ofModels(long parent) {
        try (Stream<ProcessHandle> children = ProcessHandle.of(parent).stream().flatMap(ProcessHandle::children)) {
            return children.map(ProcessHandle::pid).filter(Processes::isModel).toList();
        }
    }

    /** Returns all processes whose command line contains a text. */
    static List<Long> with(String text) {
        return ProcessHandle.allProcesses()
                .map(ProcessHandle::pid)
                .filter(process -> process != ProcessHandle.current().pid())
                .filter(process -> commandLine(process).contains(text))
                .toList();
    }

    private static boolean isModel(long process) {
        return commandLine(process).contains("triton_python_backend_stub");
    }

    static String commandLine(long process) {
        try {
            return Files.readString(Path.of("/proc", Long.toString(process), "cmdline"))
                    .replace('\0', ' ');
        } catch (IOException e) {
            return "";
        }
    }

    /** Returns what the open descriptors of this process are. */
    static List<String> descriptors() {
        try (Stream<Path> files = Files.list(Path.of("/proc/self/fd"))) {
            return files.map(Processes::target).toList();
        } catch (IOException e) {
            return List.of();
        }
    }

    private static String target(Path link) {
        try {
            return Files.readSymbolicLink(link).toString();
        } catch (IOException e) {
            return "";
        }
    }

    /** Returns the resident memory of a process in KiB. */
    static long resident(long process) {
        try (Stream<String> lines = Files.lines(Path.of("/proc", Long.toString(process), "status"))) {
            return lines.filter(line -> line.startsWith("VmRSS:"))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                    .sum();
        } catch (IOException | java.io.UncheckedIOException e) {
            return 0;
        }
    }
}
