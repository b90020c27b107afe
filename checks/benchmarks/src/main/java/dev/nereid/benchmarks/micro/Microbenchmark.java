package dev.nereid.benchmarks.micro;

import dev.nereid.benchmarks.run.Pace;
import java.io.IOException;
import java.time.Duration;
import java.util.Map;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.ChainedOptionsBuilder;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;

/** A JMH benchmark method with its parameters' values by name, run in a separate process. Immutable. */
public record Microbenchmark(Class<?> type, String method, Map<String, String> parameters) {
    public Microbenchmark {
        parameters = Map.copyOf(parameters);
    }

    /** Returns the benchmark of a method without parameters. */
    public static Microbenchmark of(Class<?> type, String method) {
        return new Microbenchmark(type, method, Map.of());
    }

    /** Runs the method for the seconds of a pace, each counted for itself. Blocks. Fails where JMH cannot run it. */
    public RunResult run(Pace pace) throws IOException {
        ChainedOptionsBuilder options = new OptionsBuilder()
                .include(type.getName() + "." + method + "$")
                .forks(1)
                .warmupIterations(seconds(pace.warmUp()))
                .warmupTime(TimeValue.seconds(1))
                .measurementIterations(seconds(pace.measured()) * pace.rounds())
                .measurementTime(TimeValue.seconds(1))
                .shouldFailOnError(true)
                .verbosity(VerboseMode.SILENT);
        parameters.forEach((name, value) -> options.param(name, value));
        try {
            return new Runner(options.build()).runSingle();
        } catch (RunnerException e) {
            throw new IOException("JMH: " + e.getMessage(), e);
        }
    }

    private static int seconds(Duration duration) {
        return Math.toIntExact(duration.toSeconds());
    }
}
