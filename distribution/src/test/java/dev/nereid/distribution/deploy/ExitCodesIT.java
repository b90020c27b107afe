package dev.nereid.distribution.deploy;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.InstalledServer;
import dev.nereid.distribution.testing.MarkdownPage;
import java.io.IOException;
import java.util.List;
import java.util.regex.Pattern;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The exit codes of docs/limits.md, by which supervisors decide about another start. FailuresIT has code 3. */
@Tag("slow")
final class ExitCodesIT {
    @ParameterizedTest
    @CsvSource({
        "0, --version",
        "1, serve --model-repository=/nonexistent",
        "1, serve --model-repository=/usr --http-port=9 --grpc-port=9",
        "2, serve --wrong",
        "2, serve --http-port=x",
        "2, walk",
        "1, models --url=http://localhost:1"
    })
    void commandsEndWithTheirCodes(int status, String arguments) throws IOException, InterruptedException {
        assertThat(InstalledServer.run(arguments.split(" ")).status()).isEqualTo(status);
    }

    @ParameterizedTest
    @CsvSource({"TERM, 143", "INT, 130"})
    void aSecondSignalEndsTheServerAtOnce(String signal, int status) throws IOException, InterruptedException {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS, "--exit-delay-secs=20")) {
            server.signal(signal);
            Eventually.holds("stopping", 20, () -> server.errSoFar().contains("stopping"));
            server.signal(signal);

            assertThat(server.awaitEnd().status()).isEqualTo(status);
        }
    }

    @ParameterizedTest
    @CsvSource({"TERM", "INT"})
    void oneSignalStopsTheServer(String signal) throws IOException, InterruptedException {
        try (InstalledServer server = InstalledServer.serve(InstalledServer.MODELS)) {
            server.signal(signal);

            assertThat(server.awaitEnd().status()).isZero();
        }
    }

    @Test
    void thePageAndTheHelpListThem() throws IOException, InterruptedException {
        String help = InstalledServer.run("serve", "--help").out().replaceAll("(?s).*\nExit codes: ", "");

        List<String> listed = Pattern.compile("(?m)^\\| ([\\d, ]+) \\|")
                .matcher(MarkdownPage.of("docs/limits.md").section("Exit codes").text())
                .results()
                .flatMap(row -> Pattern.compile(", ").splitAsStream(row.group(1)))
                .toList();
        assertThat(listed).containsExactly("0", "1", "2", "3", "130", "143");
        assertThat(listed).allSatisfy(code -> assertThat(help).containsPattern("\\b" + code + "\\b"));
    }
}
