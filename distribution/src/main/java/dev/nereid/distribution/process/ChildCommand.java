package dev.nereid.distribution.process;

import java.io.IOException;
import java.nio.charset.Charset;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;

/** Builds the command line of a child process that repeats this one. Static functions only. */
public final class ChildCommand {
    /** The system property of a child. */
    public static final String PROPERTY = "nereid.child";

    private static final Path COMMAND_LINE = Path.of("/proc/self/cmdline");
    private static final List<String> VARIABLES = List.of("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS");

    /** Options of a JVM that a second one would disturb: ports of debuggers, files of recordings. */
    private static final List<String> UNREPEATABLE = List.of(
            "-agentlib:",
            "-agentpath:",
            "-javaagent:",
            "-Xrunjdwp",
            "-Dcom.sun.management.jmxremote.port",
            "-XX:StartFlightRecording",
            "-XX:AOTCacheOutput",
            "-XX:AOTConfiguration",
            "-XX:ArchiveClassesAtExit");

    /** A fatal error leaves no report and no core in the working directory. */
    private static final List<String> OPTIONS =
            List.of("-XX:ErrorFile=/dev/null", "-XX:-CreateCoredumpOnCrash", "-D" + PROPERTY + "=true");

    private ChildCommand() {}

    /** Returns the command line of a child; empty if that of this process is unknown or has unrepeatable options. */
    public static List<String> of(List<String> arguments, Map<String, String> environment, Charset encoding) {
        Optional<String> executable = ProcessHandle.current().info().command();
        try {
            return executable.isPresent() && Files.isReadable(COMMAND_LINE)
                    ? of(
                            executable.get(),
                            split(new String(Files.readAllBytes(COMMAND_LINE), encoding)),
                            arguments,
                            environment)
                    : List.of();
        } catch (IOException e) {
            return List.of();
        }
    }

    static List<String> of(
            String executable, List<String> line, List<String> arguments, Map<String, String> environment) {
        int options = line.size() - arguments.size();
        boolean isOwn = options > 1 && line.subList(options, line.size()).equals(arguments);
        Stream<String> ofVariables = VARIABLES.stream()
                .flatMap(name ->
                        Arrays.stream(environment.getOrDefault(name, "").strip().split("\\s+")));
        if (!isOwn
                || Stream.concat(line.subList(0, options).stream(), ofVariables)
                        .anyMatch(ChildCommand::isUnrepeatable)) {
            return List.of();
        }
        List<String> command = new ArrayList<>();
        command.add(executable);
        command.addAll(OPTIONS); // first, so that options of the user take precedence
        command.addAll(line.subList(1, line.size()));
        return List.copyOf(command);
    }

    private static boolean isUnrepeatable(String option) {
        return UNREPEATABLE.stream().anyMatch(option::startsWith);
    }

    /** Splits what the kernel has: each argument ends with a zero. */
    static List<String> split(String line) {
        List<String> arguments = new ArrayList<>(Arrays.asList(line.split("\0", -1)));
        arguments.removeLast();
        return arguments;
    }
}
