package dev.nereid.benchmarks.process;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;

/**
 * Command and options of a server's JVM, reused for the ceilings. Immutable.
 *
 * @param command the path of {@code java}
 * @param options its options, without those specific to the server
 */
record Jvm(String command, List<String> options) {
    Jvm {
        options = List.copyOf(options);
    }

    /** Reads them off a process that runs a jar. */
    static Jvm of(ProcessHandle process) throws IOException {
        ProcessHandle.Info info = process.info();
        String command = info.command().orElseThrow(() -> new IOException("server: its command cannot be read"));
        List<String> arguments = Arrays.asList(
                info.arguments().orElseThrow(() -> new IOException("server: its arguments cannot be read")));
        return of(command, arguments);
    }

    /** Takes them from a command line. */
    static Jvm of(String command, List<String> arguments) {
        List<String> options = arguments.stream()
                .takeWhile(argument -> !argument.equals("-jar"))
                .filter(Jvm::isForAll)
                .toList();
        return new Jvm(command, options);
    }

    /**
     * Returns whether an option applies to all programs. AOT caches and log settings are specific to the server's own
     * jars and do not affect warm speed.
     */
    private static boolean isForAll(String option) {
        return option.startsWith("--")
                || (option.startsWith("-X") && !option.startsWith("-XX:AOT") && !option.startsWith("-Xlog"));
    }
}
