package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.ClientEventLoops;
import dev.nereid.benchmarks.load.GrpcLoad;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.BuildComparison;
import dev.nereid.benchmarks.run.Section;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;

/** Measures two installed servers in alternating periods of a few seconds. */
public final class BuildComparisonSection {
    private static final InferBody SMALL = InferBody.of("INPUT0", 1L, 256L);
    private static final InferBody LARGE = InferBody.of("INPUT0", 1L, 150_528L);

    private final BenchmarkRun bench;
    private final Path old;
    private final Table table = BuildComparison.table();

    private BuildComparisonSection(BenchmarkRun bench, Path old) {
        this.bench = bench;
        this.old = old;
    }

    /** Creates the workload of a server. */
    private interface WorkloadFactory {
        Workload on(NereidProcess server) throws IOException;
    }

    public static Table measure(BenchmarkRun bench, Path old) throws IOException, InterruptedException {
        BuildComparisonSection section = new BuildComparisonSection(bench, old);
        Set<Section> sections = bench.options().sections();
        if (sections.contains(Section.HTTP) || sections.contains(Section.GRPC)) {
            section.identity(sections.contains(Section.HTTP), sections.contains(Section.GRPC));
        }
        if (sections.contains(Section.JSON)) {
            section.model(
                    JsonSection.MODEL,
                    ModelRepositories.recorded(bench, JsonSection.MODEL),
                    JsonSection.CONFIG,
                    url -> Wrk.json("JSON x 64", bench, 64, JsonSection.BODY, url));
        }
        if (sections.contains(Section.MLP)) {
            section.model(
                    MlpSection.MODEL,
                    ModelRepositories.shared(bench, MlpSection.MODEL),
                    MlpSection.BATCHED,
                    url -> Wrk.on(MlpSection.MODEL + " x 64", bench, 64, MlpSection.ONE, url));
        }
        return section.table;
    }

    private void identity(boolean overHttp, boolean overGrpc) throws IOException, InterruptedException {
        Path repository = ModelRepositories.identity(bench);
        try (Servers servers = start(repository);
                ClientEventLoops loops = ClientEventLoops.start(bench.options().eventLoops())) {
            if (overHttp) {
                http("HTTP 1 KB x 1", SMALL, 1, servers);
                http("HTTP 1 KB x 8", SMALL, 8, servers);
                http("HTTP 1 KB x 64", SMALL, 64, servers);
                http("HTTP 600 KB x 8", LARGE, 8, servers);
            }
            if (overGrpc) {
                grpc("gRPC 1 KB x 1", SMALL, 1, loops, servers);
                grpc("gRPC 1 KB x 8", SMALL, 8, loops, servers);
                grpc("gRPC 1 KB x 64", SMALL, 64, loops, servers);
                grpc("gRPC 600 KB x 8", LARGE, 8, loops, servers);
            }
        }
    }

    private void http(String name, InferBody body, int connections, Servers servers)
            throws IOException, InterruptedException {
        run(
                name,
                server -> Wrk.on(name, bench, connections, body, server.inferUrl(ModelRepositories.IDENTITY)),
                servers);
    }

    private void grpc(String name, InferBody body, int inFlight, ClientEventLoops loops, Servers servers)
            throws IOException, InterruptedException {
        List<GrpcLoad> loads = new ArrayList<>();
        try {
            run(
                    name,
                    server -> {
                        GrpcLoad load = GrpcLoad.connect(
                                name, loops, server.grpcPort(), body.grpc(ModelRepositories.IDENTITY), inFlight);
                        loads.add(load);
                        return load;
                    },
                    servers);
        } finally {
            loads.forEach(GrpcLoad::close);
        }
    }

    /** Creates the workload of a URL. */
    private interface UrlWorkloadFactory {
        Workload on(String url) throws IOException;
    }

    private void model(String model, Optional<Path> file, String config, UrlWorkloadFactory load)
            throws IOException, InterruptedException {
        if (file.isEmpty()) {
            table.addFootnote("left out: " + model + ", since its file is not there");
            return;
        }
        try (Servers servers = start(ModelRepositories.onnx(bench, model, file.get(), config))) {
            run(model, server -> load.on(server.inferUrl(model)), servers);
        }
    }

    private void run(String name, WorkloadFactory load, Servers servers) throws IOException, InterruptedException {
        bench.progress().accept(name);
        BuildComparison comparison =
                new BuildComparison(load.on(servers.fresh), load.on(servers.old), load.on(servers.repeated));
        comparison.run(bench.options().pace(), table);
    }

    private Servers start(Path repository) throws IOException, InterruptedException {
        Launch launch = Launch.withExamples(bench, old, repository);
        List<NereidProcess> started = new ArrayList<>();
        try {
            started.add(NereidProcess.start(bench, Launch.withExamples(bench, repository)));
            started.add(NereidProcess.start(bench, launch));
            started.add(NereidProcess.start(bench, launch));
            return new Servers(started.get(0), started.get(1), started.get(2));
        } catch (IOException | InterruptedException e) {
            started.forEach(NereidProcess::close);
            throw e;
        }
    }

    private record Servers(NereidProcess fresh, NereidProcess old, NereidProcess repeated) implements AutoCloseable {
        @Override
        public void close() {
            fresh.close();
            old.close();
            repeated.close();
        }
    }
}
