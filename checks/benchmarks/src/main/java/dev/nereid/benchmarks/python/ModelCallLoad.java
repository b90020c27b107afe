package dev.nereid.benchmarks.python;

import dev.nereid.api.InferenceServer;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/**
 * A Python model that calls a Java model, one call after another; the Python model measures the times. Confined to the
 * thread that measures.
 */
record ModelCallLoad(String name, InferenceServer server) implements Workload {
    /** The longest execution; longer ones would be in the log. */
    private static final Duration LONGEST = Duration.ofSeconds(2);

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        List<Double> p50 = new ArrayList<>();
        List<Double> p99 = new ArrayList<>();
        double calls = 0;
        double seconds = 0;
        for (Duration rest = time; rest.isPositive(); rest = rest.minus(LONGEST)) {
            Duration part = rest.compareTo(LONGEST) < 0 ? rest : LONGEST;
            float[] figures = EmbeddedCall.make(server, PythonModels.CALLS, part.toMillis() / 1e3f)
                    .output();
            calls += figures[0];
            seconds += figures[1];
            p50.add((double) figures[2]);
            p99.add((double) figures[3]);
        }
        return new Sample(calls / seconds, Figures.median(p50), Figures.median(p99));
    }
}
