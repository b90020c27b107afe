package dev.nereid.benchmarks;

import dev.nereid.benchmarks.Contest.Ceiling;
import inference.ModelInferRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Tensors over gRPC through a model that does nothing, beside a bare echo. */
final class GrpcSection {
    private GrpcSection() {}

    static Table measure(Bench bench) throws IOException, InterruptedException {
        Table table = Contest.table("gRPC: identity, raw contents, calls in flight");
        Path repository = ModelFolder.identity(bench);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository));
                EchoProcess echo = EchoProcess.start(bench, server.jvm(), EchoMain.GRPC_ECHO);
                EventLoops loops = EventLoops.start(bench.options().eventLoops())) {
            for (IdentityLoad load : IdentityLoad.ALL) {
                measure(bench, load, loops, server.grpcPort(), echo.port(), table);
            }
            for (VariedLoad load : VariedLoad.ALL) {
                measure(bench, load, loops, server.grpcPort(), echo.port(), table);
            }
        }
        return table;
    }

    private static void measure(
            Bench bench, IdentityLoad load, EventLoops loops, int serverPort, int echoPort, Table table)
            throws IOException, InterruptedException {
        ModelInferRequest request = load.body().grpc(ModelFolder.IDENTITY);
        try (GrpcLoad server = GrpcLoad.connect(load.label(), loops, serverPort, request, load.concurrency());
                GrpcLoad echo = GrpcLoad.connect("grpc-java echo", loops, echoPort, request, load.concurrency())) {
            bench.run(new Contest(server, List.of(new Ceiling(echo, load.grpcGoal()))), table);
        }
    }

    private static void measure(
            Bench bench, VariedLoad load, EventLoops loops, int serverPort, int echoPort, Table table)
            throws IOException, InterruptedException {
        List<ModelInferRequest> requests = load.bodies().bodies().stream()
                .map(body -> body.grpc(ModelFolder.IDENTITY))
                .toList();
        String id = load.bodies().id();
        try (GrpcLoad server = GrpcLoad.connect(load.label(), loops, serverPort, requests, id, load.concurrency());
                GrpcLoad echo = GrpcLoad.connect("grpc-java echo", loops, echoPort, requests, id, load.concurrency())) {
            bench.run(new Contest(server, List.of(new Ceiling(echo, load.goal()))), table);
        }
    }
}
