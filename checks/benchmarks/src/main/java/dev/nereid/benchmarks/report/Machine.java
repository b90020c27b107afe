package dev.nereid.benchmarks.report;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * Properties of the machine that the figures depend on, without its name. Immutable.
 *
 * @param processor the processor's model
 * @param cores how many processors the process may use
 * @param kernel the kernel's release
 * @param load how many processes ran or waited, on average over the minute before the run
 */
public record Machine(String processor, int cores, String jdk, String kernel, double load) {
    private static final String MODEL_NAME = "model name";

    /** From here on the load of others shows in the figures. */
    private static final double QUIET = 0.5;

    public static Machine here() throws IOException {
        String processor = Files.readAllLines(Path.of("/proc/cpuinfo")).stream()
                .filter(line -> line.startsWith(MODEL_NAME))
                .map(line -> line.substring(line.indexOf(':') + 1).strip())
                .findFirst()
                .orElse("unknown processor");
        String[] loads = Files.readString(Path.of("/proc/loadavg")).split(" ", -1);
        return new Machine(
                processor,
                Runtime.getRuntime().availableProcessors(),
                Runtime.version().toString(),
                Files.readString(Path.of("/proc/sys/kernel/osrelease")).strip(),
                Double.parseDouble(loads[0]));
    }

    public List<String> lines() {
        return List.of(
                "processor: " + processor + ", " + cores + (cores == 1 ? " core" : " cores"),
                "JDK: " + jdk,
                "kernel: " + kernel,
                "load before the run: " + load
                        + (load > QUIET * cores
                                ? " (other processes were running: rely neither on the figures nor on the ratios)"
                                : ""));
    }

    /** Returns a part of a file name. */
    public String slug() {
        String name = processor.toLowerCase(Locale.ROOT).replaceAll("[^a-z0-9]+", "-");
        return name.replaceAll("^-|-$", "") + "-" + cores + "-cores";
    }
}
