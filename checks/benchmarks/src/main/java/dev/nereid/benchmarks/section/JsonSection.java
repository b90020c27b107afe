package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.Exchange;
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
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Measures small JSON tensors over HTTP through an adding model, beside a bare echo. */
final class JsonSection {
    static final String MODEL = "simple";
    private static final int ELEMENTS = 16;
    static final String CONFIG = """
            max_batch_size: 8
            input [ { name: "INPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
                    { name: "INPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
            output [ { name: "OUTPUT0" data_type: TYPE_INT32 dims: [ 16 ] },
                     { name: "OUTPUT1" data_type: TYPE_INT32 dims: [ 16 ] } ]
            """;

    static final String BODY = "{\"inputs\":[" + input("INPUT0", 1) + "," + input("INPUT1", 3) + "]}";

    private JsonSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("HTTP: " + MODEL + ", JSON both ways, connections");
        Optional<Path> file = ModelRepositories.recorded(bench, MODEL);
        if (file.isEmpty()) {
            table.addFootnote("left out: ../shared/golden/models/" + MODEL + " is not there");
            return table;
        }
        Path repository = ModelRepositories.onnx(bench, MODEL, file.get(), CONFIG);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository));
                EchoProcess echo = EchoProcess.start(bench, server.jvm(), EchoMain.HTTP_ECHO)) {
            server.awaitOk(Exchange.post(NereidProcess.inferPath(MODEL), BODY));
            measure(bench, 1, Goal.none(), server, echo, table);
            measure(bench, 64, new Goal.RateAtLeast(0.35), server, echo, table);
        }
        return table;
    }

    private static void measure(
            BenchmarkRun bench, int connections, Goal goal, NereidProcess server, EchoProcess echo, Table table)
            throws IOException, InterruptedException {
        Wrk subject = Wrk.json(MODEL + " x " + connections, bench, connections, BODY, server.inferUrl(MODEL));
        Wrk ceiling = Wrk.json("Vert.x echo, request.body()", bench, connections, BODY, echo.url(HttpEcho.WHOLE));
        bench.run(new CeilingComparison(subject, List.of(new Ceiling(ceiling, goal))), table);
    }

    private static String input(String name, int factor) {
        String data = IntStream.range(0, ELEMENTS)
                .mapToObj(i -> Integer.toString(factor * i))
                .collect(Collectors.joining(","));
        return "{\"name\":\"%s\",\"datatype\":\"INT32\",\"shape\":[1,%d],\"data\":[%s]}"
                .formatted(name, ELEMENTS, data);
    }
}
