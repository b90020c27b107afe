package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.HttpResponseCheck;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.process.SelfSignedCertificate;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Measures small tensors over TLS, beside the same server without TLS. */
final class TlsSection {
    private static final InferBody BODY = InferBody.of("INPUT0", 1L, 256L);
    private static final int CONNECTIONS = 64;

    private TlsSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("HTTP: identity, binary tensors of 1 KB, encrypted");
        Path repository = ModelRepositories.identity(bench);
        SelfSignedCertificate certificate = SelfSignedCertificate.create(bench);
        Launch encrypted = Launch.withExamples(
                bench,
                repository,
                "--http-use-ssl=true",
                "--http-server-cert=" + certificate.file(),
                "--http-server-key=" + certificate.key());
        try (NereidProcess server = NereidProcess.start(bench, encrypted, certificate.clients());
                NereidProcess plain = NereidProcess.start(bench, Launch.withExamples(bench, repository))) {
            HttpResponseCheck.check(plain.inferUrl(ModelRepositories.IDENTITY), BODY, BODY.tensor());
            String url = server.encryptedInferUrl(ModelRepositories.IDENTITY);
            bench.run(
                    new CeilingComparison(
                            Wrk.on("TLS x " + CONNECTIONS, bench, CONNECTIONS, BODY, url),
                            List.of(new Ceiling(
                                    Wrk.on(
                                            "plain text",
                                            bench,
                                            CONNECTIONS,
                                            BODY,
                                            plain.inferUrl(ModelRepositories.IDENTITY)),
                                    new Goal.RateAtLeast(0.7)))),
                    table);
        }
        return table;
    }
}
