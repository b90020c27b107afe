package dev.nereid.benchmarks;

import dev.nereid.benchmarks.Contest.Ceiling;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Tensors over HTTP, binary, through a model that does nothing, beside a bare echo. */
final class HttpSection {
    private HttpSection() {}

    static Table measure(Bench bench) throws IOException, InterruptedException {
        Table table = Contest.table("HTTP: identity, binary tensors");
        Path repository = ModelFolder.identity(bench);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository));
                EchoProcess echo = EchoProcess.start(bench, server.jvm(), EchoMain.HTTP_ECHO)) {
            for (IdentityLoad load : IdentityLoad.ALL) {
                String url = server.inferUrl(ModelFolder.IDENTITY);
                HttpAnswer.check(url, load.body(), load.body().tensor());
                bench.run(new Contest(wrk(bench, load, load.label(), url), ceilings(bench, load, echo)), table);
            }
            for (VariedLoad load : VariedLoad.ALL) {
                String url = server.inferUrl(ModelFolder.IDENTITY);
                List<InferBody> bodies = load.bodies().bodies();
                for (InferBody body : List.of(bodies.getFirst(), bodies.getLast())) {
                    HttpAnswer.check(url, body, body.tensor());
                }
                Ceiling ceiling = new Ceiling(
                        wrk(bench, load, "Vert.x echo, request.body()", echo.url(HttpEcho.WHOLE)), load.goal());
                bench.run(new Contest(wrk(bench, load, load.label(), url), List.of(ceiling)), table);
            }
        }
        return table;
    }

    private static List<Ceiling> ceilings(Bench bench, IdentityLoad load, EchoProcess echo) throws IOException {
        List<Ceiling> ceilings = new ArrayList<>();
        ceilings.add(new Ceiling(
                wrk(bench, load, "Vert.x echo, request.body()", echo.url(HttpEcho.WHOLE)), load.httpGoal()));
        if (load.isLarge()) {
            ceilings.add(
                    new Ceiling(wrk(bench, load, "Vert.x echo, chunk by chunk", echo.url(HttpEcho.CHUNKS)), Goal.NONE));
        }
        return ceilings;
    }

    private static Wrk wrk(Bench bench, VariedLoad load, String name, String url) throws IOException {
        return Wrk.varied(name, bench, load.concurrency(), load.bodies(), url);
    }

    private static Wrk wrk(Bench bench, IdentityLoad load, String name, String url) throws IOException {
        return Wrk.on(name, bench, load.concurrency(), load.body(), url);
    }
}
