package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.ClientEventLoops;
import dev.nereid.benchmarks.load.GrpcLoad;
import dev.nereid.benchmarks.process.EchoMain;
import dev.nereid.benchmarks.process.EchoProcess;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import inference.ModelInferRequest;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Measures tensors over gRPC through an identity model, beside a bare echo. */
final class GrpcSection {
    private GrpcSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("gRPC: identity, raw contents, calls in flight");
        Path repository = ModelRepositories.identity(bench);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository));
                EchoProcess echo = EchoProcess.start(bench, server.jvm(), EchoMain.GRPC_ECHO);
                ClientEventLoops loops = ClientEventLoops.start(bench.options().eventLoops())) {
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
            BenchmarkRun bench, IdentityLoad load, ClientEventLoops loops, int serverPort, int echoPort, Table table)
            throws IOException, InterruptedException {
        ModelInferRequest request = load.body().grpc(ModelRepositories.IDENTITY);
        try (GrpcLoad server = GrpcLoad.connect(load.label(), loops, serverPort, request, load.concurrency());
                GrpcLoad echo = GrpcLoad.connect("grpc-java echo", loops, echoPort, request, load.concurrency())) {
            bench.run(new CeilingComparison(server, List.of(new Ceiling(echo, load.grpcGoal()))), table);
        }
    }

    private static void measure(
            BenchmarkRun bench, VariedLoad load, ClientEventLoops loops, int serverPort, int echoPort, Table table)
            throws IOException, InterruptedException {
        List<ModelInferRequest> requests = load.bodies().bodies().stream()
                .map(body -> body.grpc(ModelRepositories.IDENTITY))
                .toList();
        String id = load.bodies().id();
        try (GrpcLoad server = GrpcLoad.connect(load.label(), loops, serverPort, requests, id, load.concurrency());
                GrpcLoad echo = GrpcLoad.connect("grpc-java echo", loops, echoPort, requests, id, load.concurrency())) {
            bench.run(new CeilingComparison(server, List.of(new Ceiling(echo, load.goal()))), table);
        }
    }
}
