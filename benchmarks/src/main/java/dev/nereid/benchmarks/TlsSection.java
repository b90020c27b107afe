package dev.nereid.benchmarks;

import dev.nereid.benchmarks.Contest.Ceiling;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;

/** Small tensors over encrypted HTTP, on connections that stay, beside the same server without encryption. */
final class TlsSection {
    private static final InferBody BODY = InferBody.of("INPUT0", 1L, 256L);
    private static final int CONNECTIONS = 64;

    private TlsSection() {}

    static Table measure(Bench bench) throws IOException, InterruptedException {
        Table table = Contest.table("HTTP: identity, binary tensors of 1 KB, encrypted");
        Path repository = ModelFolder.identity(bench);
        Certificate certificate = Certificate.create(bench);
        Launch encrypted = Launch.withExamples(
                bench,
                repository,
                "--http-use-ssl=true",
                "--http-server-cert=" + certificate.file(),
                "--http-server-key=" + certificate.key());
        try (NereidProcess server = NereidProcess.start(bench, encrypted, certificate.clients());
                NereidProcess plain = NereidProcess.start(bench, Launch.withExamples(bench, repository))) {
            HttpAnswer.check(plain.inferUrl(ModelFolder.IDENTITY), BODY, BODY.tensor());
            String url = server.encryptedInferUrl(ModelFolder.IDENTITY);
            bench.run(
                    new Contest(
                            Wrk.on("TLS x " + CONNECTIONS, bench, CONNECTIONS, BODY, url),
                            List.of(new Ceiling(
                                    Wrk.on(
                                            "plain text",
                                            bench,
                                            CONNECTIONS,
                                            BODY,
                                            plain.inferUrl(ModelFolder.IDENTITY)),
                                    new Goal.RateAtLeast(0.7)))),
                    table);
        }
        return table;
    }
}
