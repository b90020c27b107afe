package dev.nereid.distribution.parity;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.CountingServer;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.ScriptedModels;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Tests ensembles over every protocol: the same outputs, and the same errors in the same words. */
@Timeout(120)
final class EnsembleIT {
    @TempDir
    private static Path directory;

    private static TestServer server;
    private static CountingServer counting;
    private static final Map<Protocol, ScenarioClient> CLIENTS = new EnumMap<>(Protocol.class);

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        ScriptedModels models = EnsembleScenarios.models(directory);
        NereidServer nereid =
                NereidServer.start(TestServer.of(models.repository()).withPlugins(models.plugins()));
        counting = new CountingServer(nereid);
        server = TestServer.open(nereid, port -> counting);
        CLIENTS.put(Protocol.HTTP_JSON, new HttpScenarios(server.http(), false));
        CLIENTS.put(Protocol.HTTP_BINARY, new HttpScenarios(server.http(), true));
        CLIENTS.put(Protocol.GRPC, new GrpcScenarios(server.grpc(), false));
        CLIENTS.put(Protocol.GRPC_STREAM, new GrpcScenarios(server.grpc(), true));
        CLIENTS.put(Protocol.EMBEDDED, new EmbeddedScenarios(nereid));
    }

    @AfterAll
    static void stop() throws IOException, InterruptedException {
        for (ScenarioClient client : CLIENTS.values()) {
            client.end();
        }
        counting.awaitCompletion();
        Eventually.holds("no memory in use", 10, () -> server.server().memory().bytesInUse() == 0);
        server.close();
    }

    static List<Scenario> scenarios() {
        return EnsembleScenarios.all();
    }

    @ParameterizedTest
    @MethodSource("scenarios")
    void isTheSameOverEveryProtocol(Scenario scenario) throws IOException, InterruptedException {
        Map<Protocol, Outcome> outcomes = new EnumMap<>(Protocol.class);
        for (Map.Entry<Protocol, ScenarioClient> client : CLIENTS.entrySet()) {
            if (!scenario.impossible().containsKey(client.getKey())) {
                outcomes.put(client.getKey(), client.getValue().run(scenario));
            }
        }

        Outcome response = ParityCheck.requireExpected(scenario, outcomes);
        ParityCheck.requireSame(scenario, outcomes, response);
    }

    @Test
    void noScenarioIsThereTwice() {
        List<Scenario> all = EnsembleScenarios.all();
        assertThat(new HashSet<>(all.stream().map(Scenario::name).toList())).hasSameSizeAs(all);
    }
}
