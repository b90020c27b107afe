package dev.nereid.benchmarks.run;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/**
 * Command-line options of a run. Immutable.
 *
 * @param pace how long
 * @param eventLoops the event loops of the server, of each ceiling, and of the clients
 * @param onnxThreads the threads of ONNX Runtime where server and ceiling must have the same
 * @param compared the directory of another installed server, to be compared with the one of this checkout
 * @param save whether the tables are also written to {@code checks/benchmarks/results}
 * @param help whether only the usage is printed
 */
public record Options(
        Set<Section> sections,
        Pace pace,
        int eventLoops,
        int onnxThreads,
        Optional<Path> compared,
        boolean save,
        boolean help) {
    public static final String USAGE = """
            Usage: checks/benchmarks/run [OPTION...]
            Measures the packaged server beside its ceilings, and prints tables.

              --only=LIST          some of http,json,codec,scheduler,sequences,ensembles,waiting,shm,tls,grpc,mlp,batching,squeezenet,tensorflow,pytorch,python,start,models,minute; default: all
              --quick              3 s of warm-up and 3 s measured: checks that everything runs; figures are not valid
              --warm-up=SECONDS    load before each comparison, for each workload; default: 10
              --measure=SECONDS    load that is measured; default: 10
              --rounds=N           how often each is measured, in rotation; the median counts; default: 1
              --event-loops=N      of the server, of the ceilings and of the clients; default: half the processors
              --onnx-threads=N     of ONNX Runtime for squeezenet, server and ceiling alike; default: the processors
              --compare=DIR        instead: the server installed in DIR against this checkout's, alternating every two
                                   seconds; --only takes http,grpc,json,mlp
              --save               also writes checks/benchmarks/results/DATE-PROCESSOR.md
              --help               prints this text
            """;

    public Options {
        sections = Set.copyOf(sections);
        positive("--event-loops", eventLoops);
        positive("--onnx-threads", onnxThreads);
    }

    /**
     * Reads flags, with their values after {@code =} or as the next argument.
     *
     * @throws IllegalArgumentException naming the flag, its value and the expected form
     */
    public static Options parse(List<String> arguments, int processors) {
        Deque<String> rest = new ArrayDeque<>(arguments);
        Set<Section> sections = EnumSet.allOf(Section.class);
        Pace pace = Pace.DEFAULT;
        int eventLoops = Math.max(1, processors / 2);
        int onnxThreads = processors;
        Optional<Path> compared = Optional.empty();
        boolean save = false;
        boolean help = false;
        while (!rest.isEmpty()) {
            String argument = rest.pop();
            int equals = argument.indexOf('=');
            String flag = equals < 0 ? argument : argument.substring(0, equals);
            if (equals >= 0) {
                rest.push(argument.substring(equals + 1));
            }
            switch (flag) {
                case "--only" -> sections = sections(value(flag, rest));
                case "--quick" -> pace = Pace.QUICK;
                case "--warm-up" -> pace = new Pace(seconds(flag, rest), pace.measured(), pace.rounds());
                case "--measure" -> pace = new Pace(pace.warmUp(), seconds(flag, rest), pace.rounds());
                case "--rounds" -> pace = new Pace(pace.warmUp(), pace.measured(), number(flag, rest));
                case "--event-loops" -> eventLoops = number(flag, rest);
                case "--onnx-threads" -> onnxThreads = number(flag, rest);
                case "--compare" -> {
                    compared = Optional.of(directory(flag, rest));
                    pace = pace.equals(Pace.DEFAULT) ? Pace.COMPARED : pace;
                }
                case "--save" -> save = true;
                case "--help" -> help = true;
                default -> throw new IllegalArgumentException(argument + ": unknown (expected: a flag of --help)");
            }
        }
        return new Options(sections, pace, eventLoops, onnxThreads, compared, save, help);
    }

    private static Set<Section> sections(String list) {
        Set<Section> sections = EnumSet.noneOf(Section.class);
        Arrays.stream(list.split(",", -1)).map(Section::of).forEach(sections::add);
        return sections;
    }

    private static String value(String flag, Deque<String> rest) {
        if (rest.isEmpty()) {
            throw new IllegalArgumentException(flag + ": nothing (expected: a value)");
        }
        return rest.pop();
    }

    private static Path directory(String flag, Deque<String> rest) {
        Path directory = Path.of(value(flag, rest)).toAbsolutePath().normalize();
        if (!Files.isExecutable(directory.resolve("bin/nereid"))) {
            throw new IllegalArgumentException(
                    flag + ": " + directory + " (expected: an installed server, with bin/nereid)");
        }
        return directory;
    }

    private static Duration seconds(String flag, Deque<String> rest) {
        return Duration.ofSeconds(number(flag, rest));
    }

    private static int number(String flag, Deque<String> rest) {
        String text = value(flag, rest);
        try {
            return positive(flag, Integer.parseInt(text));
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException(flag + ": '" + text + "' (expected: a whole number)", e);
        }
    }

    private static int positive(String flag, int number) {
        if (number < 1) {
            throw new IllegalArgumentException(flag + ": " + number + " (expected: >= 1)");
        }
        return number;
    }
}
