package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.HttpResponseCheck;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.EchoMain;
import dev.nereid.benchmarks.process.EchoProcess;
import dev.nereid.benchmarks.process.HttpEcho;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Measures binary tensors over HTTP through an identity model, beside a bare echo. */
final class HttpSection {
    private HttpSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("HTTP: identity, binary tensors");
        Path repository = ModelRepositories.identity(bench);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository));
                EchoProcess echo = EchoProcess.start(bench, server.jvm(), EchoMain.HTTP_ECHO)) {
            for (IdentityLoad load : IdentityLoad.ALL) {
                String url = server.inferUrl(ModelRepositories.IDENTITY);
                HttpResponseCheck.check(url, load.body(), load.body().tensor());
                bench.run(
                        new CeilingComparison(wrk(bench, load, load.label(), url), ceilings(bench, load, echo)), table);
            }
            for (VariedLoad load : VariedLoad.ALL) {
                String url = server.inferUrl(ModelRepositories.IDENTITY);
                List<InferBody> bodies = load.bodies().bodies();
                for (InferBody body : List.of(bodies.getFirst(), bodies.getLast())) {
                    HttpResponseCheck.check(url, body, body.tensor());
                }
                Ceiling ceiling = new Ceiling(
                        wrk(bench, load, "Vert.x echo, request.body()", echo.url(HttpEcho.WHOLE)), load.goal());
                bench.run(new CeilingComparison(wrk(bench, load, load.label(), url), List.of(ceiling)), table);
            }
        }
        return table;
    }

    private static List<Ceiling> ceilings(BenchmarkRun bench, IdentityLoad load, EchoProcess echo) throws IOException {
        List<Ceiling> ceilings = new ArrayList<>();
        ceilings.add(new Ceiling(
                wrk(bench, load, "Vert.x echo, request.body()", echo.url(HttpEcho.WHOLE)), load.httpGoal()));
        if (load.isLarge()) {
            ceilings.add(new Ceiling(
                    wrk(bench, load, "Vert.x echo, chunk by chunk", echo.url(HttpEcho.CHUNKS)), Goal.none()));
        }
        return ceilings;
    }

    private static Wrk wrk(BenchmarkRun bench, VariedLoad load, String name, String url) throws IOException {
        return Wrk.varied(name, bench, load.concurrency(), load.bodies(), url);
    }

    private static Wrk wrk(BenchmarkRun bench, IdentityLoad load, String name, String url) throws IOException {
        return Wrk.on(name, bench, load.concurrency(), load.body(), url);
    }
}
